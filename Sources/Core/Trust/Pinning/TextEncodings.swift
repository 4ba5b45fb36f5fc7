import HTTPCore

/// The hexadecimal text of certificate fingerprints.
enum Hexadecimal {
    /// Encodes each byte as two upper-case digits, with `separator` between the pairs.
    static func encode(_ bytes: [UInt8], separator: UInt8) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count * 3)
        for byte in bytes {
            if !text.isEmpty { text.append(separator) }
            text.append(ASCII.capitalHexDigit(byte >> 4))
            text.append(ASCII.capitalHexDigit(byte))
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Decodes pairs of digits, either all separated by single colons or none; otherwise returns
    /// `nil`.
    static func decode(_ text: [UInt8]) -> [UInt8]? {
        let separated = text.contains(UInt8(ascii: ":"))
        let stride = separated ? 3 : 2
        guard (text.count + (separated ? 1 : 0)).isMultiple(of: stride) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / stride + 1)
        var index = 0
        while index < text.count {
            guard let high = ASCII.hexValue(text[index]),
                let low = ASCII.hexValue(text[index + 1])
            else { return nil }
            bytes.append(high << 4 | low)
            index += 2
            guard separated, index < text.count else { continue }
            guard text[index] == UInt8(ascii: ":") else { return nil }
            index += 1
        }
        return bytes
    }
}
