/* The words of PTX that the reader knows: one list each for opcodes, modifiers and types. An error at the loading of a
 * module names any other word. The spelling is PTX's; `bar.sync` is the opcode `bar` with the modifier `sync`. */
#ifndef MR_PTX_READ_WORDS_H
#define MR_PTX_READ_WORDS_H

/* clang-format off */

#define PTX_OPCODES(X) \
    X(abs) X(activemask) X(add) X(addc) X(alloca) X(and) X(atom) X(bar) X(barrier) X(bfe) X(bfi) \
    X(bfind) X(bmsk) X(bra) X(brev) X(brkpt) X(brx) X(call) X(clz) X(cnot) X(copysign) X(cos) \
    X(cp) X(cvt) X(cvta) X(discard) X(div) X(dp2a) X(dp4a) X(ex2) X(exit) X(fence) X(fma) X(fns) \
    X(griddepcontrol) X(isspacep) X(ld) X(ldu) X(lg2) X(lop3) X(mad) X(mad24) X(madc) X(match) \
    X(max) X(membar) X(min) X(mov) X(mul) X(mul24) X(nanosleep) X(neg) X(not) X(or) X(pmevent) \
    X(popc) X(prefetch) X(prefetchu) X(prmt) X(rcp) X(red) X(redux) X(rem) X(ret) X(rsqrt) X(sad) \
    X(selp) X(set) X(setp) X(shf) X(shfl) X(shl) X(shr) X(sin) X(slct) X(sqrt) X(st) \
    X(stackrestore) X(stacksave) X(sub) X(subc) X(szext) X(tanh) X(testp) X(trap) X(vote) X(xor)

/* Modifiers other than types. Two columns: the name in C, and the spelling where it is not an identifier of C. */
#define PTX_MODIFIERS(X) \
    /* rounding */ \
    X(rn, "rn") X(rz, "rz") X(rm, "rm") X(rp, "rp") X(rna, "rna") X(rs, "rs") X(rni, "rni") \
    X(rzi, "rzi") X(rmi, "rmi") X(rpi, "rpi") \
    /* arithmetic */ \
    X(ftz, "ftz") X(sat, "sat") X(satfinite, "satfinite") X(relu, "relu") X(approx, "approx") \
    X(full, "full") X(lo, "lo") X(hi, "hi") X(wide, "wide") X(cc, "cc") X(nan, "NaN") \
    X(xorsign, "xorsign") X(abs, "abs") X(l, "l") X(r, "r") X(clamp, "clamp") X(wrap, "wrap") \
    X(shiftamt, "shiftamt") X(noftz, "noftz") X(oob, "oob") X(f4e, "f4e") X(b4e, "b4e") \
    X(rc8, "rc8") X(ecl, "ecl") X(ecr, "ecr") X(rc16, "rc16") \
    /* comparison and testp */ \
    X(eq, "eq") X(ne, "ne") X(lt, "lt") X(le, "le") X(gt, "gt") X(ge, "ge") X(ls, "ls") \
    X(hs, "hs") X(equ, "equ") X(neu, "neu") X(ltu, "ltu") X(leu, "leu") X(gtu, "gtu") \
    X(geu, "geu") X(num, "num") X(unordered, "nan") X(finite, "finite") X(infinite, "infinite") \
    X(number, "number") X(notanumber, "notanumber") X(normal, "normal") X(subnormal, "subnormal") \
    /* boolean, atomic and reduction operations */ \
    X(and, "and") X(or, "or") X(xor, "xor") X(not, "not") X(popc, "popc") X(add, "add") \
    X(min, "min") X(max, "max") X(inc, "inc") X(dec, "dec") X(exch, "exch") X(cas, "cas") \
    /* spaces */ \
    X(global, "global") X(shared, "shared") X(local, "local") X(const_, "const") X(param, "param") \
    X(shared_cta, "shared::cta") X(shared_cluster, "shared::cluster") \
    X(param_entry, "param::entry") X(param_func, "param::func") X(to, "to") \
    /* memory order, scope, cache */ \
    X(weak, "weak") X(volatile_, "volatile") X(relaxed, "relaxed") X(acquire, "acquire") \
    X(release, "release") X(acq_rel, "acq_rel") X(sc, "sc") X(mmio, "mmio") X(cta, "cta") \
    X(cluster, "cluster") X(gpu, "gpu") X(sys, "sys") X(gl, "gl") X(ca, "ca") X(cg, "cg") \
    X(cs, "cs") X(lu, "lu") X(cv, "cv") X(wb, "wb") X(wt, "wt") X(nc, "nc") X(L1, "L1") \
    X(L2, "L2") X(L2_64B, "L2::64B") X(L2_128B, "L2::128B") X(L2_256B, "L2::256B") \
    X(L1_evict_last, "L1::evict_last") X(L1_evict_first, "L1::evict_first") \
    X(L1_evict_normal, "L1::evict_normal") X(L1_evict_unchanged, "L1::evict_unchanged") \
    X(L1_no_allocate, "L1::no_allocate") X(L2_cache_hint, "L2::cache_hint") X(unified, "unified") \
    /* vectors */ \
    X(v2, "v2") X(v4, "v4") X(v8, "v8") \
    /* control, barriers, warps */ \
    X(uni, "uni") X(idx, "idx") X(sync, "sync") X(arrive, "arrive") X(red, "red") \
    X(aligned, "aligned") X(warp, "warp") X(up, "up") X(down, "down") X(bfly, "bfly") \
    X(all, "all") X(any, "any") X(ballot, "ballot") \
    /* cp.async */ \
    X(async, "async") X(commit_group, "commit_group") X(wait_group, "wait_group") \
    X(wait_all, "wait_all") X(launch_dependents, "launch_dependents") X(wait, "wait")

/* name, bytes (0: predicate), kind of value */
#define PTX_TYPES(X) \
    X(pred, 0, BITS) X(b8, 1, BITS) X(b16, 2, BITS) X(b32, 4, BITS) X(b64, 8, BITS) \
    X(b128, 16, BITS) X(u8, 1, UNSIGNED) X(u16, 2, UNSIGNED) X(u32, 4, UNSIGNED) \
    X(u64, 8, UNSIGNED) X(s8, 1, SIGNED) X(s16, 2, SIGNED) X(s32, 4, SIGNED) X(s64, 8, SIGNED) \
    X(f16, 2, FLOAT) X(bf16, 2, FLOAT) X(f32, 4, FLOAT) X(f64, 8, FLOAT) X(tf32, 4, FLOAT) \
    X(f16x2, 4, FLOAT) X(bf16x2, 4, FLOAT) X(e4m3x2, 2, FLOAT) X(e5m2x2, 2, FLOAT) \
    X(u16x2, 4, UNSIGNED) X(s16x2, 4, SIGNED)

/* Special registers that can be read. The vectors tid, ntid, ctaid, nctaid have .x .y .z; the number after the name is how
 * many bytes a read gives. */
#define PTX_SPECIALS(X) \
    X(tid, 4) X(ntid, 4) X(ctaid, 4) X(nctaid, 4) X(laneid, 4) X(warpid, 4) X(nwarpid, 4) \
    X(smid, 4) X(nsmid, 4) X(gridid, 8) X(lanemask_eq, 4) X(lanemask_le, 4) X(lanemask_lt, 4) \
    X(lanemask_ge, 4) X(lanemask_gt, 4) X(clock, 4) X(clock_hi, 4) X(clock64, 8) X(globaltimer, 8) \
    X(globaltimer_lo, 4) X(globaltimer_hi, 4) X(total_smem_size, 4) X(dynamic_smem_size, 4) \
    X(is_explicit_cluster, 0) X(clusterid, 4) X(nclusterid, 4) X(cluster_ctaid, 4) \
    X(cluster_nctaid, 4) X(cluster_ctarank, 4) X(cluster_nctarank, 4) \
    X(reserved_smem_offset_begin, 4) X(reserved_smem_offset_end, 4) X(reserved_smem_offset_cap, 4) \
    X(reserved_smem_offset_0, 4) X(reserved_smem_offset_1, 4) X(aggr_smem_size, 4) \
    X(current_graph_exec, 8) X(envreg, 4)

/* clang-format on */

#endif
