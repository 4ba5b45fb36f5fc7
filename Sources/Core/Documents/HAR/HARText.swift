/// What of an HTTP Archive (HAR 1.2) is text, and what is in base64.
package enum HARText {
    /// Content as text in UTF-8; `nil` if it is none.
    ///
    /// - Parameters:
    ///   - type: the value of its Content-Type field, or an empty text.
    ///   - isCut: whether its end is missing. Up to three bytes there may then be the beginning of
    ///     one character.
    package static func text(of bytes: [UInt8], type: String, isCut: Bool = false) -> String? {
        if let text = utf8(bytes, isCut) { return text }
        let latin = ["iso-8859-1", "latin1", "us-ascii"]
        let charset = ContentType(ofResponse: type)?.charset
        guard let charset, latin.contains(charset), isText(bytes) else { return nil }
        return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }

    private static func utf8(_ bytes: [UInt8], _ isCut: Bool) -> String? {
        guard isText(bytes) else { return nil }
        for left in 0...(isCut ? min(3, bytes.count) : 0) {
            if let text = String(validating: bytes.dropLast(left), as: UTF8.self) { return text }
        }
        return nil
    }

    /// Whether there are none of the control characters that are in no text.
    private static func isText(_ bytes: [UInt8]) -> Bool {
        bytes.allSatisfy { $0 >= 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0C || $0 == 0x0D }
    }

    /// When an exchange began: with three digits of the second's fraction, which some readers
    /// expect.
    package static func time(milliseconds: Int64) -> String {
        let seconds = DateText.text(Double(milliseconds / 1000)) ?? "9999-12-31T23:59:59Z"
        let fraction = String(1000 + milliseconds % 1000).dropFirst()
        return seconds.dropLast() + "." + fraction + "Z"
    }

    /// Milliseconds, down to microseconds.
    package static func number(_ milliseconds: Double) -> DocumentValue {
        let rounded = (milliseconds * 1000).rounded() / 1000
        return .number(
            rounded == rounded.rounded() && abs(rounded) < 1e15
                ? DocumentNumber(Int64(rounded)) : DocumentNumber(rounded) ?? 0)
    }

    /// A name and a value, as HAR has them everywhere.
    package static func pair(_ name: String, _ value: String) -> DocumentValue {
        .dictionary(["name": .string(name), "value": .string(value)])
    }
}
