#!/usr/bin/env python3
"""Files of tensors for tests/lua/files.lua, written by NumPy and, for .safetensors, by the few lines below, which share
nothing with the program. Needs NumPy; run in this folder.

    python3 make.py              writes the files and expected.lua, which has their values
    python3 make.py --check DIR  reads the files that `millrace write.lua DIR` wrote
"""
import json
import struct
import sys

import numpy as np

EXPECTED = []


def lua(value):
    if isinstance(value, (list, tuple)):
        return "{ " + ", ".join(lua(v) for v in value) + " }" if value else "{}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if value != value:
            return "0/0"
        if value in (float("inf"), float("-inf")):
            return ("-" if value < 0 else "") + "math.huge"
        return repr(value)
    if isinstance(value, int):
        return "math.mininteger" if value == -2**63 else str(value)
    return json.dumps(value)


DTYPES = {"f2": "f16", "f4": "f32", "f8": "f64", "i4": "i32", "i8": "i64", "u1": "u8", "b1": "bool"}


def npy(name, array, version=None, fortran=False):
    order = np.asfortranarray(array) if fortran else array
    with open(name + ".npy", "wb") as f:
        np.lib.format.write_array(f, order, version=version, allow_pickle=True)
    key = array.dtype.str[1:]
    if key in DTYPES:
        EXPECTED.append((name + ".npy", DTYPES[key], list(array.shape), array.tolist()))


def write_safetensors(path, tensors, metadata=None, spaces=0):
    """tensors: name -> (dtype tag, shape, bytes)"""
    header, blob = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, (tag, shape, data) in tensors.items():
        header[name] = {"dtype": tag, "shape": shape, "data_offsets": [len(blob), len(blob) + len(data)]}
        blob += data
    text = json.dumps(header).encode() + b" " * spaces
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + blob)


def read_safetensors(path):
    with open(path, "rb") as f:
        data = f.read()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    metadata = header.pop("__metadata__", {})
    blob, used = data[8 + size:], 0
    tags = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8", "U8": "|u1", "BOOL": "|b1",
            "BF16": "<u2"}
    result = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        used += end - begin
        dtype = np.dtype(tags[entry["dtype"]])
        assert begin % dtype.itemsize == 0, "not aligned"
        result[name] = np.frombuffer(blob[begin:end], dtype).reshape(entry["shape"])
        if entry["dtype"] == "BF16":
            result[name] = (result[name].astype("<u4") << 16).view("<f4")
    assert used == len(blob) and size % 8 == 0
    return result, metadata


def make():
    values = {
        "f2": [[1.5, -2.0, 65504.0], [6e-8, float("inf"), 0.0]],
        "f4": [[1.5, -2.25, 3e38], [1e-45, float("-inf"), 0.1]],
        "f8": [[1.5, -2.25, 1e308], [5e-324, float("inf"), 0.1]],
        "i4": [[1, -2, 2**31 - 1], [-2**31, 0, 7]],
        "i8": [[1, -2, 2**63 - 1], [-2**63, 0, 7]],
        "u1": [[1, 2, 255], [0, 128, 7]],
        "b1": [[True, False, True], [False, False, True]],
    }
    for key, nested in values.items():
        npy("c_" + key, np.array(nested, dtype="<" + key))
        if key not in ("u1", "b1"):
            npy("big_" + key, np.array(nested, dtype=">" + key))
    box = np.arange(24, dtype="<f4").reshape(2, 3, 4)
    npy("fortran_f4", box, fortran=True)
    npy("fortran_big_i8", np.arange(6, dtype=">i8").reshape(3, 2), fortran=True)
    npy("scalar", np.array(2.5))
    npy("vector", np.array([3, 1, 2], dtype="<i4"))
    npy("empty", np.zeros((0, 3), dtype="<f4"))
    npy("version_2", np.array([1.0, 2.0], dtype="<f4"), version=(2, 0))
    npy("version_3", np.array([1.0, 2.0], dtype="<f4"), version=(3, 0))
    for name, array in {
        "i2": np.array([1], dtype="<i2"),
        "u4": np.array([1], dtype="<u4"),
        "c8": np.array([1j], dtype="<c8"),
        "f16": np.array([1], dtype=np.longdouble),
        "object": np.array([{}], dtype=object),
        "text": np.array(["abc"]),
        "date": np.array(["2020-01-01"], dtype="M8[D]"),
        "record": np.array([(1, 2.0)], dtype=[("a", "<i4"), ("b", "<f4")]),
    }.items():
        npy("refused_" + name, array)

    pieces = {
        "layer.weight": ("F32", [2, 2], np.array([[1, 2], [3, 4.5]], "<f4").tobytes()),
        "half": ("F16", [3], np.array([1, 0.5, -2], "<f2").tobytes()),
        # the upper halves of 1, -2.5 and 3.140625 in f32
        "brain": ("BF16", [3], struct.pack("<3H", 0x3F80, 0xC020, 0x4049)),
        "caf\u00e9 \"\\\n\U0001F600": ("I64", [1], np.array([-7], "<i8").tobytes()),
        "flags": ("BOOL", [2], b"\x01\x00"),
        "nothing": ("F64", [0, 4], b""),
        "single": ("I32", [], np.array(5, "<i4").tobytes()),
        "bytes": ("U8", [2, 1], b"\x01\xff"),
    }
    write_safetensors("mixed.safetensors", pieces, {"format": "pt", "note": "a \"text\""}, spaces=5)
    write_safetensors("none.safetensors", {})
    write_safetensors("refused_i16.safetensors", {"x": ("I16", [1], b"\0\0")})
    with open("expected.lua", "w") as f:
        f.write("-- Written by make.py: of each file its dtype, shape and values.\nreturn {\n")
        for name, dtype, shape, nested in EXPECTED:
            f.write(f'  {{ "{name}", "{dtype}", {lua(shape)},\n')
            rows = nested if isinstance(nested, list) and shape and len(shape) > 1 else None
            f.write(f"    {{ {', '.join(lua(r) for r in rows)} }} }},\n".replace("}, {", "},\n      {")
                    if rows else f"    {lua(nested)} }},\n")
        f.write("}\n")


def check(folder):
    def same(name, dtype, values):
        array = np.load(f"{folder}/{name}.npy")
        assert array.dtype == np.dtype(dtype), (name, array.dtype)
        np.testing.assert_array_equal(array, np.array(values, dtype=dtype))
        assert array.flags["C_CONTIGUOUS"], name

    same("f64", "<f8", [[1.5, -2.25, 1e308], [5e-324, float("inf"), 0.1]])
    same("f32", "<f4", [[1.5, -2.25], [float("-inf"), 0.1]])
    same("f16", "<f2", [1.5, 65504.0, 6e-8])
    same("i32", "<i4", [-2**31, 2**31 - 1])
    same("i64", "<i8", [-2**63, 2**63 - 1])
    same("u8", "|u1", [0, 255])
    same("bool", "|b1", [True, False])
    same("transposed", "<f4", [[0, 3], [1, 4], [2, 5]])
    same("scalar", "<f4", 2.5)
    same("empty", "<f4", np.zeros((0, 3)))
    same("deep", "<i8", np.arange(24).reshape(1, 2, 3, 1, 4, 1))
    tensors, metadata = read_safetensors(f"{folder}/all.safetensors")
    assert metadata == {"format": "pt", "epoch": "3"}, metadata
    expected = {
        "w": np.array([[1, 2], [3, 4]], "<f4"), "t": np.array([[1, 3], [2, 4]], "<f4"),
        "caf\u00e9 \"\\\n": np.array([7], "<i8"), "flags": np.array([True, False]),
        "half": np.array([0.5, -2], "<f2"), "brain": np.array([1, -2.5], "<f4"), "none": np.zeros((0, 2), "<f8"),
    }
    assert set(tensors) == set(expected), set(tensors)
    for name, array in expected.items():
        assert tensors[name].dtype == array.dtype, name
        np.testing.assert_array_equal(tensors[name], array)
    print("the files are those that were expected")


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--check":
        check(sys.argv[2])
    else:
        make()
