#!/usr/bin/env python3
"""The dtypes of results by torch.result_type, for tests/lua/promotion.lua: prints expected.lua. Needs PyTorch.

    tests/data/promotion/make.py > tests/data/promotion/expected.lua
"""
import torch

DTYPES = {
    "bool": torch.bool, "u8": torch.uint8, "i32": torch.int32, "i64": torch.int64,
    "f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


def table(title, comment, others):
    print(f"  -- {comment}")
    print(f"  {title} = {{")
    for name, dtype in DTYPES.items():
        row = [NAMES[torch.result_type(torch.ones(2, dtype=dtype), other)] for other in others]
        print("    {:4} = \"{}\",".format(name, " ".join(f"{word:4}" for word in row).rstrip()))
    print("  },")


print("-- What torch.result_type says. Written by make.py: change that. Rows: the first input, which has")
print("-- dimensions; columns: the second, in the order of `dtypes`.")
print("return {")
print("  dtypes = { " + ", ".join(f'"{name}"' for name in DTYPES) + " },")
table("with_dimensions", "The second has dimensions, too. The same holds if neither has.",
      [torch.ones(2, dtype=dtype) for dtype in DTYPES.values()])
table("without_dimensions", "The second has none.", [torch.ones((), dtype=dtype) for dtype in DTYPES.values()])
table("beside_numbers", "The second is a number: true, 1, 1.5. The first may have dimensions or not.", [True, 1, 1.5])
print("}")
for a in DTYPES.values():
    for b in DTYPES.values():
        both = torch.result_type(torch.ones((), dtype=a), torch.ones((), dtype=b))
        assert both == torch.result_type(torch.ones(2, dtype=a), torch.ones(2, dtype=b))
    for number in (True, 1, 1.5):
        assert torch.result_type(torch.ones((), dtype=a), number) == torch.result_type(torch.ones(2, dtype=a), number)
