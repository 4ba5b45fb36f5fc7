/// Whether bytes are UTF-8, as they come (Unicode, table 3-7): what cannot become it is told at its
/// first byte that is wrong.
struct UTF8Check: Hashable, Sendable {
    /// Bytes that the character still needs.
    private var missing = 0
    /// What the next of them may be.
    private var allowed: ClosedRange<UInt8> = 0x80...0xBF

    /// Whether no character is left unfinished.
    var isComplete: Bool { missing == 0 }

    /// False: the bytes are not UTF-8, whatever follows.
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
            // No overlong forms, no surrogates.
            if byte == 0xE0 { allowed = 0xA0...0xBF }
            if byte == 0xED { allowed = 0x80...0x9F }
        case 0xF0...0xF4:
            missing = 3
            // No overlong forms, nothing above U+10FFFF.
            if byte == 0xF0 { allowed = 0x90...0xBF }
            if byte == 0xF4 { allowed = 0x80...0x8F }
        default: return false
        }
        return true
    }
}
