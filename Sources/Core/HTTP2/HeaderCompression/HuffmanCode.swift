/// The Huffman code of header compression (RFC 7541 Appendix B).
///
/// It is canonical: among codes of one length, and from one length to the next, a larger symbol has
/// a larger code. No code has more than 30 bits.
enum HuffmanCode {
    /// The symbol that ends a string; it must not occur in one (RFC 7541 §5.2).
    static let endOfString = 256

    /// For each byte, and for the end of the string: the code in the lowest bits of the upper half,
    /// its length in the lower half.
    static let codes: InlineArray<257, UInt64> = [
        0x1ff8_0000_000d, 0x7fffd8_0000_0017, 0xfffffe2_0000_001c, 0xfffffe3_0000_001c,
        0xfffffe4_0000_001c, 0xfffffe5_0000_001c, 0xfffffe6_0000_001c, 0xfffffe7_0000_001c,
        0xfffffe8_0000_001c, 0xffffea_0000_0018, 0x3ffffffc_0000_001e, 0xfffffe9_0000_001c,
        0xfffffea_0000_001c, 0x3ffffffd_0000_001e, 0xfffffeb_0000_001c, 0xfffffec_0000_001c,
        0xfffffed_0000_001c, 0xfffffee_0000_001c, 0xfffffef_0000_001c, 0xffffff0_0000_001c,
        0xffffff1_0000_001c, 0xffffff2_0000_001c, 0x3ffffffe_0000_001e, 0xffffff3_0000_001c,
        0xffffff4_0000_001c, 0xffffff5_0000_001c, 0xffffff6_0000_001c, 0xffffff7_0000_001c,
        0xffffff8_0000_001c, 0xffffff9_0000_001c, 0xffffffa_0000_001c, 0xffffffb_0000_001c,
        0x14_0000_0006, 0x3f8_0000_000a, 0x3f9_0000_000a, 0xffa_0000_000c, 0x1ff9_0000_000d,
        0x15_0000_0006, 0xf8_0000_0008, 0x7fa_0000_000b, 0x3fa_0000_000a, 0x3fb_0000_000a,
        0xf9_0000_0008, 0x7fb_0000_000b, 0xfa_0000_0008, 0x16_0000_0006, 0x17_0000_0006,
        0x18_0000_0006, 0x0_0000_0005, 0x1_0000_0005, 0x2_0000_0005, 0x19_0000_0006,
        0x1a_0000_0006, 0x1b_0000_0006, 0x1c_0000_0006, 0x1d_0000_0006, 0x1e_0000_0006,
        0x1f_0000_0006, 0x5c_0000_0007, 0xfb_0000_0008, 0x7ffc_0000_000f, 0x20_0000_0006,
        0xffb_0000_000c, 0x3fc_0000_000a, 0x1ffa_0000_000d, 0x21_0000_0006, 0x5d_0000_0007,
        0x5e_0000_0007, 0x5f_0000_0007, 0x60_0000_0007, 0x61_0000_0007, 0x62_0000_0007,
        0x63_0000_0007, 0x64_0000_0007, 0x65_0000_0007, 0x66_0000_0007, 0x67_0000_0007,
        0x68_0000_0007, 0x69_0000_0007, 0x6a_0000_0007, 0x6b_0000_0007, 0x6c_0000_0007,
        0x6d_0000_0007, 0x6e_0000_0007, 0x6f_0000_0007, 0x70_0000_0007, 0x71_0000_0007,
        0x72_0000_0007, 0xfc_0000_0008, 0x73_0000_0007, 0xfd_0000_0008, 0x1ffb_0000_000d,
        0x7fff0_0000_0013, 0x1ffc_0000_000d, 0x3ffc_0000_000e, 0x22_0000_0006, 0x7ffd_0000_000f,
        0x3_0000_0005, 0x23_0000_0006, 0x4_0000_0005, 0x24_0000_0006, 0x5_0000_0005,
        0x25_0000_0006, 0x26_0000_0006, 0x27_0000_0006, 0x6_0000_0005, 0x74_0000_0007,
        0x75_0000_0007, 0x28_0000_0006, 0x29_0000_0006, 0x2a_0000_0006, 0x7_0000_0005,
        0x2b_0000_0006, 0x76_0000_0007, 0x2c_0000_0006, 0x8_0000_0005, 0x9_0000_0005,
        0x2d_0000_0006, 0x77_0000_0007, 0x78_0000_0007, 0x79_0000_0007, 0x7a_0000_0007,
        0x7b_0000_0007, 0x7ffe_0000_000f, 0x7fc_0000_000b, 0x3ffd_0000_000e, 0x1ffd_0000_000d,
        0xffffffc_0000_001c, 0xfffe6_0000_0014, 0x3fffd2_0000_0016, 0xfffe7_0000_0014,
        0xfffe8_0000_0014, 0x3fffd3_0000_0016, 0x3fffd4_0000_0016, 0x3fffd5_0000_0016,
        0x7fffd9_0000_0017, 0x3fffd6_0000_0016, 0x7fffda_0000_0017, 0x7fffdb_0000_0017,
        0x7fffdc_0000_0017, 0x7fffdd_0000_0017, 0x7fffde_0000_0017, 0xffffeb_0000_0018,
        0x7fffdf_0000_0017, 0xffffec_0000_0018, 0xffffed_0000_0018, 0x3fffd7_0000_0016,
        0x7fffe0_0000_0017, 0xffffee_0000_0018, 0x7fffe1_0000_0017, 0x7fffe2_0000_0017,
        0x7fffe3_0000_0017, 0x7fffe4_0000_0017, 0x1fffdc_0000_0015, 0x3fffd8_0000_0016,
        0x7fffe5_0000_0017, 0x3fffd9_0000_0016, 0x7fffe6_0000_0017, 0x7fffe7_0000_0017,
        0xffffef_0000_0018, 0x3fffda_0000_0016, 0x1fffdd_0000_0015, 0xfffe9_0000_0014,
        0x3fffdb_0000_0016, 0x3fffdc_0000_0016, 0x7fffe8_0000_0017, 0x7fffe9_0000_0017,
        0x1fffde_0000_0015, 0x7fffea_0000_0017, 0x3fffdd_0000_0016, 0x3fffde_0000_0016,
        0xfffff0_0000_0018, 0x1fffdf_0000_0015, 0x3fffdf_0000_0016, 0x7fffeb_0000_0017,
        0x7fffec_0000_0017, 0x1fffe0_0000_0015, 0x1fffe1_0000_0015, 0x3fffe0_0000_0016,
        0x1fffe2_0000_0015, 0x7fffed_0000_0017, 0x3fffe1_0000_0016, 0x7fffee_0000_0017,
        0x7fffef_0000_0017, 0xfffea_0000_0014, 0x3fffe2_0000_0016, 0x3fffe3_0000_0016,
        0x3fffe4_0000_0016, 0x7ffff0_0000_0017, 0x3fffe5_0000_0016, 0x3fffe6_0000_0016,
        0x7ffff1_0000_0017, 0x3ffffe0_0000_001a, 0x3ffffe1_0000_001a, 0xfffeb_0000_0014,
        0x7fff1_0000_0013, 0x3fffe7_0000_0016, 0x7ffff2_0000_0017, 0x3fffe8_0000_0016,
        0x1ffffec_0000_0019, 0x3ffffe2_0000_001a, 0x3ffffe3_0000_001a, 0x3ffffe4_0000_001a,
        0x7ffffde_0000_001b, 0x7ffffdf_0000_001b, 0x3ffffe5_0000_001a, 0xfffff1_0000_0018,
        0x1ffffed_0000_0019, 0x7fff2_0000_0013, 0x1fffe3_0000_0015, 0x3ffffe6_0000_001a,
        0x7ffffe0_0000_001b, 0x7ffffe1_0000_001b, 0x3ffffe7_0000_001a, 0x7ffffe2_0000_001b,
        0xfffff2_0000_0018, 0x1fffe4_0000_0015, 0x1fffe5_0000_0015, 0x3ffffe8_0000_001a,
        0x3ffffe9_0000_001a, 0xffffffd_0000_001c, 0x7ffffe3_0000_001b, 0x7ffffe4_0000_001b,
        0x7ffffe5_0000_001b, 0xfffec_0000_0014, 0xfffff3_0000_0018, 0xfffed_0000_0014,
        0x1fffe6_0000_0015, 0x3fffe9_0000_0016, 0x1fffe7_0000_0015, 0x1fffe8_0000_0015,
        0x7ffff3_0000_0017, 0x3fffea_0000_0016, 0x3fffeb_0000_0016, 0x1ffffee_0000_0019,
        0x1ffffef_0000_0019, 0xfffff4_0000_0018, 0xfffff5_0000_0018, 0x3ffffea_0000_001a,
        0x7ffff4_0000_0017, 0x3ffffeb_0000_001a, 0x7ffffe6_0000_001b, 0x3ffffec_0000_001a,
        0x3ffffed_0000_001a, 0x7ffffe7_0000_001b, 0x7ffffe8_0000_001b, 0x7ffffe9_0000_001b,
        0x7ffffea_0000_001b, 0x7ffffeb_0000_001b, 0xffffffe_0000_001c, 0x7ffffec_0000_001b,
        0x7ffffed_0000_001b, 0x7ffffee_0000_001b, 0x7ffffef_0000_001b, 0x7fffff0_0000_001b,
        0x3ffffee_0000_001a, 0x3fffffff_0000_001e,
    ]

    /// A symbol's code, without leading zeros.
    @inline(__always)
    static func code(_ symbol: Int) -> UInt64 { codes[symbol] &>> 32 }

    /// The length of a symbol's code in bits: 5 to 30.
    @inline(__always)
    static func length(_ symbol: Int) -> Int { Int(truncatingIfNeeded: codes[symbol] & 0xFF) }
}
