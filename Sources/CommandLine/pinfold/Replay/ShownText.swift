// Texts of logs: others choose them, in any length and with any characters.
extension String {
    /// The text as it is kept to be shown: cut, with an ellipsis in place of the rest.
    ///
    /// - Parameter maximum: the most characters.
    func cut(after maximum: Int = 300) -> String {
        // No text has more characters than bytes.
        guard utf8.count > maximum,
            let end = unicodeScalars.index(
                startIndex, offsetBy: maximum, limitedBy: unicodeScalars.endIndex),
            end < unicodeScalars.endIndex
        else { return self }
        return String(unicodeScalars[..<end]) + "…"
    }

    /// The text as a terminal may get it, on one line: characters that it would act on, or not
    /// display, are escaped as in Swift (`\u{1B}`).
    var printable: String {
        var shown = ""
        for scalar in unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse,
                .unassigned:
                shown += "\\u{" + String(scalar.value, radix: 16, uppercase: true) + "}"
            default: shown.unicodeScalars.append(scalar)
            }
        }
        return shown
    }
}
