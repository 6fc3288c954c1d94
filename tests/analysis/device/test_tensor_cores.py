"""Which kernels run on tensor cores, why others do not, and what the rule says of them."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.advice import advise, worded
from stepscope.analysis.methods.matrix_units import generation_of, least_multiple, unit_of
from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import RANKS, STEPS
from tests.analysis.device.launched import US, Range, Work, tables_of

V100, A100 = "Tesla V100-SXM2-32GB", "NVIDIA A100-SXM4-80GB"


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("volta_sgemm_128x32_nn", "plain"),
        ("volta_fp16_sgemm_fp16_128x64_nn", "plain"),
        ("volta_hgemm_256x128_nn", "plain"),
        ("ampere_sgemm_32x32_sliced1x4_tn", "plain"),
        ("void cutlass::Kernel<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(cutlass_80_simt)", "plain"),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8_ffma_aligna4", "plain"),
        ("cudnn_infer_volta_scudnn_128x64_relu_medium_nn_v1", "plain"),
        ("volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", "plain"),
        ("void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(int, int)", "plain"),
        ("void wgrad_alg0_engine<float, 128, 6, 7, 3, 3, 5, false, 512>(int)", "plain"),
        ("void implicit_convolve_sgemm<float, float, 1024, 6, 7>(int)", "plain"),
        ("volta_s884gemm_fp16_128x64_ldg8_nn", "tensor"),
        ("volta_h884cudnn_256x128_ldg8_relu_exp_small_nhwc_tn_v1", "tensor"),
        ("turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn", "tensor"),
        ("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_nt", "tensor"),
        ("ampere_bf16_s16816gemm_bf16_64x64_sliced1x2_ldg8_f2f_stages_64x6_nn", "tensor"),
        ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4>(int)", "tensor"),
        ("sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw", "tensor"),
        ("sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_warpgroupsize2x1x1_hgmma", "tensor"),
        ("nvjet_tst_64x64_64x16_2x1_2cta_v_bz_bias_TNT", "tensor"),
        ("void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64>>(int)", "tensor"),
        ("Cijk_Ailk_Bljk_BBS_BH_MT32x32x64_MI16x16x16x1_SN", "tensor"),
        ("Cijk_Ailk_Bljk_SB_MT32x32x8_SE", "unknown"),
        ("triton_tem_fused_mm_0_gemm", "unknown"),
        ("void gemv2T_kernel_val<int, float>(int)", None),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)", None),
        ("void fbgemm_gpu::permute_2D_data_kernel<false>(int)", None),
        ("volta_dgemm_64x64_nn", None),
        ("void splitKreduce_kernel<float, float>(cublasSplitKParams<float>, float const*)", None),
        ("void cudnn::ops::nchwToNhwcKernel<float>(int)", None),
        ("void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(int)", None),
        ("triton_poi_fused_add_cos_sin_0", None),
    ],
)
def test_names_of_kernels_say_on_what_they_multiply(name: str, unit: str | None) -> None:
    assert pl.DataFrame({"name": [name]}).select(unit_of()).item() == unit


def test_sizes_of_products_and_channels_of_convolutions_decide() -> None:
    assert least_multiple("aten::addmm", "[[7], [16, 512], [512, 24], [], []]") == 8
    assert least_multiple("aten::bmm", "[[1024, 96, 30], [1024, 30, 647]]") == 1
    assert least_multiple("aten::cudnn_convolution", "[[32, 3, 224, 224], [64, 3, 7, 7], []]") == 1
    assert least_multiple("aten::cudnn_convolution", "[[32, 64, 7, 7], [48, 64, 3, 3]]") == 16
    assert least_multiple("aten::add", "[[3, 5]]") is least_multiple("aten::mm", None) is None


def test_the_generation_is_that_of_the_device_else_the_least_that_runs_the_kernels() -> None:
    assert [generation_of(name, []) for name in (V100, A100, "Tesla P100-PCIE-16GB", "NVIDIA H200", "NVIDIA L4")] == [
        70,
        80,
        60,
        90,
        89,
    ]
    assert generation_of(None, ["volta_sgemm_128x32_nn", "ampere_sgemm_128x64_nn"]) == 80
    assert generation_of("Some other", ["add"]) is None


def run(device: str | None, *kernels: tuple[str, str], kind: str = "cuda", ranks: int = 1, wait: int = 0) -> Run:
    """Two steps of kernels of 100 us each, of operators with types and shapes, launched early (or `wait` us late)."""
    tables = {}
    for rank in range(ranks):
        work, ranges = [], []
        for place, (name, _) in enumerate(kernels * 2):
            start = 1000 + place * 100
            call = (start - 20 + wait, start - 10 + wait) if wait else (place * 10, place * 10 + 5)
            work.append(Work(name, start + wait, start + 100, call, operator=place))
            ranges.append(Range("aten::mm", call[0] - 1, call[1] + 1))
        found = tables_of(work, ranges, kind)
        shapes = [text for _, text in kernels] * 2
        types, sizes = zip(*(text.split("|") for text in shapes), strict=True)
        found["operators"] = found["operators"].with_columns(
            input_types=pl.Series(types), input_shapes=pl.Series(sizes)
        )
        end = (1000 + 200 * len(kernels)) * US
        half = (1000 + 100 * len(kernels)) * US
        bounds = {"start_ns": [0, half], "end_ns": [half, end]}
        windows = {"window_start_ns": [1000 * US, half], "window_end_ns": [half, end], "window": ["device"] * 2}
        found["steps"] = STEPS.frame(step=[1, 2], **bounds, **windows)
        found["kernels"] = found["kernels"].with_columns(
            step=pl.when(pl.col("start_ns") < half).then(1).otherwise(2).cast(pl.Int32)
        )
        found["ranks"] = RANKS.frame(rank=[rank], device_kind=[kind], device_name=[device], framework=["pytorch"])
        tables[rank] = {name: rows for name, rows in found.items() if name != "slices"}
    return Run.from_frames(tables)


FLOAT, HALF = "['float', 'float']|[[64, 64], [64, 64]]", "['c10::Half', 'c10::Half']|[[64, 64], [64, 64]]"
ODD = "['c10::Half', 'c10::Half']|[[64, 65], [65, 64]]"


@pytest.mark.parametrize(
    ("device", "kernel", "reason"),
    [
        (V100, ("volta_sgemm_128x32_nn", FLOAT), "single precision"),
        (A100, ("ampere_sgemm_128x64_nn", FLOAT), "single precision without TF32"),
        (A100, ("ampere_fp16_sgemm_fp16_128x64_nn", ODD), "sizes"),
        (A100, ("ampere_fp16_sgemm_fp16_128x64_nn", HALF), "other"),
        ("Tesla P100-PCIE-16GB", ("maxwell_sgemm_128x64_nn", FLOAT), None),
        (None, ("volta_sgemm_128x32_nn", FLOAT), "single precision"),
        (V100, ("volta_s884gemm_fp16_128x64_ldg8_nn", HALF), None),
    ],
)
def test_types_and_sizes_say_why_and_the_finding_repeats_it(
    device: str | None, kernel: tuple[str, str], reason: str | None
) -> None:
    job = run(device, kernel, ("add", FLOAT))

    rows = job.analyse("tensor_cores")

    assert rows["reason"].to_list() == [reason]
    assert rows["share_ratio"].to_list() == [0.5]
    found = [one for one in advise(job, strict=True) if one.rule == "tensor-cores"]
    assert [one.message for one in found] == ([] if reason is None else [reason])
    assert all(one.severity != "high" and one.saving_ns == 50 * US for one in found)


def test_tf32_that_other_products_use_is_not_off() -> None:
    on = ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4>(int)", FLOAT)
    odd = ("ampere_sgemm_128x64_nn", "['float', 'float']|[[64, 30], [30, 64]]")

    rows = run(A100, on, odd, ("ampere_sgemm_128x64_nt", FLOAT)).analyse("tensor_cores")

    assert dict(rows.select("name", "reason").rows()) == {
        on[0]: None,
        "ampere_sgemm_128x64_nn": "sizes",
        "ampere_sgemm_128x64_nt": "other",
    }


def test_the_saving_is_what_the_replay_of_all_ranks_saves_and_at_most_that_of_the_peaks() -> None:
    (found,) = [
        one
        for one in advise(run(V100, ("volta_sgemm_128x32_nn", FLOAT), ("add", FLOAT), ranks=2), strict=True)
        if one.rule == "tensor-cores"
    ]

    assert found.ranks == [0, 1]
    assert (found.saving_low_ns, found.saving_ns, found.saving_high_ns) == (0, 50 * US, 87_440)
    assert "50% of the kernels' time on rank 0" in worded(found).summary
    assert "shapes (64x64), (64x64)" in worded(found).summary
    assert "torch.float16" in worded(found).action


def test_kernels_that_wait_for_their_host_save_nothing_and_are_no_finding() -> None:
    late = run(V100, ("volta_sgemm_128x32_nn", FLOAT), ("add", FLOAT), wait=90)

    assert late.analyse("tensor_core_savings")["saving_ns"].to_list() == [0]
    assert [one for one in advise(late, strict=True) if one.rule == "tensor-cores"] == []


@pytest.mark.parametrize("kind", ["npu", "cpu", "rocm"])
def test_other_devices_have_no_finding(kind: str) -> None:
    job = run(V100 if kind != "rocm" else "AMD Instinct MI300X", ("volta_sgemm_128x32_nn", FLOAT), kind=kind)

    if kind == "rocm":
        assert job.analyse("tensor_cores")["reason"].to_list() == [None]
    else:
        with pytest.raises(Unavailable, match="no kernel whose name"):
            job.analyse("tensor_cores")
    assert [one for one in advise(job, strict=True) if one.rule == "tensor-cores"] == []
