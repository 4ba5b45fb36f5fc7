extension OutputBytes {
    /// Appends a big-endian UTF-16 text as UTF-8. Returns whether it is valid: no half of a
    /// surrogate pair alone, no truncated unit.
    mutating func append(utf16 text: UnsafeRawBufferPointer) -> Bool {
        guard text.count.isMultiple(of: 2) else { return false }
        var isWhole = true
        write(atMost: text.count / 2 * 3) { output in
            var index = 0
            while index < text.count, isWhole {
                var scalar = UInt32(text[index]) << 8 | UInt32(text[index + 1])
                index += 2
                if scalar & 0xF800 == 0xD800 {
                    let low = index < text.count ? UInt32(text[index]) << 8 : 0
                    isWhole = scalar < 0xDC00 && low & 0xFC00 == 0xDC00
                    guard isWhole else { break }
                    scalar =
                        0x10000 + (scalar & 0x3FF) << 10 + (low & 0x300 | UInt32(text[index + 1]))
                    index += 2
                }
                output.put(utf8: scalar)
            }
        }
        return isWhole
    }
}

extension ByteCursor {
    fileprivate mutating func put(utf8 scalar: UInt32) {
        func put(_ value: UInt32) { self.put(UInt8(truncatingIfNeeded: value)) }
        switch scalar {
        case 0..<0x80: put(scalar)
        case 0x80..<0x800:
            put(0xC0 | scalar >> 6)
            put(0x80 | scalar & 0x3F)
        case 0x800..<0x10000:
            put(0xE0 | scalar >> 12)
            put(0x80 | scalar >> 6 & 0x3F)
            put(0x80 | scalar & 0x3F)
        default:
            put(0xF0 | scalar >> 18)
            put(0x80 | scalar >> 12 & 0x3F)
            put(0x80 | scalar >> 6 & 0x3F)
            put(0x80 | scalar & 0x3F)
        }
    }
}
