import HTTPCore

/// File names out of what servers say, which may be anything.
enum SuggestedName {
    /// Bytes of a name; file systems take 255, and the partial file's is longer.
    static let maximumBytes = 200
    private static let fallback = "download"

    static func name(disposition: String?, path: String) -> String {
        if let disposition, let name = safe(parameter(of: disposition) ?? "") { return name }
        let bare = path.prefix { $0 != "?" && $0 != "#" }
        let last = bare.split(separator: "/").last.map(String.init) ?? ""
        return safe(decoded(last) ?? last) ?? fallback
    }

    /// The last part of a name, where that is one that can be a file's.
    private static func safe(_ text: String) -> String? {
        let last = text.split { $0 == "/" || $0 == "\\" }.last.map(String.init) ?? ""
        var name = String(
            String.UnicodeScalarView(
                last.unicodeScalars.filter { $0.value >= 0x20 && !(0x7F...0x9F ~= $0.value) }))
        while name.utf8.count > maximumBytes { name.removeLast() }
        // A leading dot would hide it, or make it a folder's name.
        let visible = name.drop { $0 == "." || $0 == " " }
        return visible.isEmpty ? nil : String(visible)
    }

    /// `filename*` (RFC 8187, in UTF-8), else `filename` (RFC 6266 section 4.3).
    private static func parameter(of disposition: String) -> String? {
        var plain: String?
        for part in parts(of: disposition).dropFirst() {
            guard let equals = part.firstIndex(of: "=") else { continue }
            let name = part[..<equals].withoutOuterSpace.lowercasedASCII
            let value = String(part[part.index(after: equals)...].withoutOuterSpace)
            switch name {
            case "filename*":
                let sides = value.split(separator: "'", omittingEmptySubsequences: false)
                if sides.count == 3, sides[0].lowercasedASCII == "utf-8",
                    let text = decoded(String(sides[2]))
                {
                    return text
                }
            case "filename" where plain == nil: plain = unquoted(value)
            default: break
            }
        }
        return plain
    }

    /// What stands between semicolons that are not within quotes.
    private static func parts(of text: String) -> [String] {
        var parts = [""]
        var (isQuoted, isEscaped) = (false, false)
        for character in text {
            if character == ";", !isQuoted {
                parts.append("")
                continue
            }
            if character == "\"", !isEscaped { isQuoted.toggle() }
            isEscaped = isQuoted && character == "\\" && !isEscaped
            parts[parts.count - 1].append(character)
        }
        return parts
    }

    private static func unquoted(_ text: String) -> String {
        guard text.count >= 2, text.first == "\"", text.last == "\"" else { return text }
        var name = ""
        var isEscaped = false
        for character in text.dropFirst().dropLast() {
            if character == "\\", !isEscaped {
                isEscaped = true
                continue
            }
            isEscaped = false
            name.append(character)
        }
        return name
    }

    /// Percent-encoding undone; nil where it is broken, or the bytes are no UTF-8.
    private static func decoded(_ text: String) -> String? {
        PercentCoding.decode(text.utf8).flatMap { String(validating: $0, as: UTF8.self) }
    }
}
