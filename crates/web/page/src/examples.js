// Kernels that the page brings along. They are files of the repository; their launches are those of examples/cases.json and
// of the comments in tests/run, where data comes from a fill instead of a file.
import blockSum from "../../../../examples/block_sum/racy.ptx";
import clamp from "../../../../examples/f16x2_clamp/f16x2_clamp.ptx";
import histogram from "../../../../examples/histogram/histogram.ptx";
import mandelbrot from "../../../../examples/mandelbrot/mandelbrot.ptx";
import matmul from "../../../../examples/matmul/matmul.ptx";
import saxpy from "../../../../examples/saxpy/saxpy.ptx";
import scale from "../../../../examples/scale/scale.ptx";
import wrong from "../../../../examples/scale/wrong.ptx";
import softmax from "../../../../examples/softmax/softmax.ptx";
import divergence from "../../../../tests/run/divergence_nested.ptx";
import printf from "../../../../tests/run/printf.ptx";

export const EXAMPLES = [
  { name: "Mandelbrot: a picture", text: mandelbrot, grid: "20,30", block: "16,8", args: ["u32[240x320]", "320", "240", "64", "-2.2", "1.2", "0.01"] },
  { name: "Scale: four numbers", text: scale, block: "4", args: ["f32[4]=1,2.5,-3,1e38", "10"] },
  { name: "Scale with an error, and its help", text: wrong, block: "4", args: ["f32[4]=1,2.5,-3,1e38", "10"] },
  { name: "Saxpy out of bounds: a fault", text: saxpy, grid: "5", block: "256", args: ["1200", "2.7", "f32[1000]=iota", "f32[1000]=1"] },
  { name: "A sum with a race: tools", text: blockSum, block: "64", tool: true, args: ["f32[64]=1", "f32[1]"] },
  { name: "Branches that diverge", text: divergence, block: "40", args: ["u32[40]"] },
  { name: "Matrix product in tiles", text: matmul, grid: "4,3", block: "16,16", args: ["f32[45x37]=normal(1)", "f32[37x51]=normal(2)", "f32[45x51]", "45", "51", "37"] },
  { name: "Softmax of rows", text: softmax, grid: "7", block: "96", args: ["f32[7x301]=normal(3)", "f32[7x301]", "301"] },
  { name: "Histogram of bytes", text: histogram, grid: "4", block: "200", args: ["u8[10007]=random(4)", "10007", "u32[256]"] },
  { name: "Pairs of halves, clamped", text: clamp, block: "32", args: ["f16[26]=normal(5)", "f16[26]", "0xbc00bc00", "0x3c003c00", "13"] },
  { name: "printf", text: printf, entry: "test", block: "3", args: ["s32[3]"] },
];
