/// Incremental UTF-8 validation (Unicode, table 3-7). An invalid sequence is detected at its first
/// wrong byte.
struct UTF8Check: Hashable, Sendable {
    /// The number of bytes that the current character still needs.
    private var missing = 0
    /// The valid range of the next byte.
    private var allowed: ClosedRange<UInt8> = 0x80...0xBF

    /// Whether the bytes so far end at a character boundary.
    var isComplete: Bool { missing == 0 }

    /// Returns `false` if the bytes are not UTF-8, whatever follows.
    mutating func take(_ bytes: some Sequence<UInt8>) -> Bool {
        for byte in bytes where !take(byte) { return false }
        return true
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard missing == 0 else {
            guard allowed.contains(byte) else { return false }
            missing -= 1
            allowed = 0x80...0xBF
            return true
        }
        switch byte {
        case 0x00...0x7F: return true
        case 0xC2...0xDF: missing = 1
        case 0xE0...0xEF:
            missing = 2
            // Excludes overlong forms and surrogates.
            if byte == 0xE0 { allowed = 0xA0...0xBF }
            if byte == 0xED { allowed = 0x80...0x9F }
        case 0xF0...0xF4:
            missing = 3
            // Excludes overlong forms and anything above U+10FFFF.
            if byte == 0xF0 { allowed = 0x90...0xBF }
            if byte == 0xF4 { allowed = 0x80...0x8F }
        default: return false
        }
        return true
    }
}
