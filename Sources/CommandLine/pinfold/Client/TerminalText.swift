/// Text of others on a terminal.
enum TerminalText {
    /// The text with its control characters written as JSON does: those of ASCII with DEL, and
    /// those of ISO 6429 (U+0080 to U+009F), of which terminals take one for the beginning of a
    /// command.
    static func escaped(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isControl) else { return text }
        return text.unicodeScalars.map { scalar in
            guard isControl(scalar) else { return String(Character(scalar)) }
            let digits = String(scalar.value, radix: 16)
            return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }.joined()
    }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value)
    }
}
