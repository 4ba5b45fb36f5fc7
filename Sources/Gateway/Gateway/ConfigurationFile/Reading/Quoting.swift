/// A value as shown in errors: in quotes, on one line, with control characters escaped, and
/// truncated after `maximum` characters.
func quoted(_ text: String, maximum: Int = 80) -> String {
    var shown = "\""
    var count = 0
    for scalar in text.unicodeScalars {
        guard count < maximum else {
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

/// A file's path as shown in errors: whole, for its end is what names the file. No path is longer
/// (path_resolution(7)).
func quoted(path: String) -> String { quoted(path, maximum: 4096) }
