/// Texts that others have written, for people and their terminals.
enum FleetText {
    /// The longest text.
    static let maximumBytes = 300

    /// A text without control characters, and without those that are not seen and change how the
    /// rest is shown: `?` stands for each of them. What is too long ends with `…`.
    static func shown(_ text: String, maximumBytes: Int = maximumBytes) -> String {
        var shown = String.UnicodeScalarView()
        var bytes = 0
        for scalar in text.unicodeScalars {
            let isSafe =
                switch scalar.properties.generalCategory {
                case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse,
                    .surrogate, .unassigned:
                    false
                default: true
                }
            let next = isSafe ? scalar : "?"
            bytes += UTF8.width(next)
            guard bytes <= maximumBytes else {
                shown.append("…")
                break
            }
            shown.append(next)
        }
        return String(shown)
    }

    /// The same for bytes, which may not be UTF-8.
    static func shown(_ bytes: some Collection<UInt8>, maximumBytes: Int = maximumBytes) -> String {
        shown(String(decoding: bytes, as: UTF8.self), maximumBytes: maximumBytes)
    }
}
