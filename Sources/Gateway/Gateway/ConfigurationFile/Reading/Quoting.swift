/// The maximum number of characters of a value that an error shows.
private let maximumShown = 80

/// A value as shown in errors: in quotes, on one line, with control characters escaped, and
/// truncated if it is long.
func quoted(_ text: String) -> String {
    var shown = "\""
    var count = 0
    for scalar in text.unicodeScalars {
        guard count < maximumShown else {
            shown += "…"
            break
        }
        count += 1
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse:
            shown += scalar.escaped(asASCII: true)
        default:
            if scalar == "\"" { shown += "\\" }
            shown.unicodeScalars.append(scalar)
        }
    }
    return shown + "\""
}
