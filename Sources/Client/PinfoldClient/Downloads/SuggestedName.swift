import HTTPCore

/// Derives file names from untrusted data of a server.
enum SuggestedName {
    /// The maximum length of a name in bytes. File systems allow 255, and the partial file's name
    /// is longer.
    static let maximumBytes = 200
    private static let fallback = "download"

    static func name(disposition: String?, path: String) -> String {
        if let disposition, let name = safe(parameter(of: disposition) ?? "") { return name }
        let bare = path.prefix { $0 != "?" && $0 != "#" }
        let last = bare.split(separator: "/").last.map(String.init) ?? ""
        return safe(decoded(last) ?? last) ?? fallback
    }

    /// Returns the last component of a name, if it is valid as a file name.
    private static func safe(_ text: String) -> String? {
        let last = text.split { $0 == "/" || $0 == "\\" }.last.map(String.init) ?? ""
        var name = String(
            String.UnicodeScalarView(
                last.unicodeScalars.filter { $0.value >= 0x20 && !(0x7F...0x9F ~= $0.value) }))
        while name.utf8.count > maximumBytes { name.removeLast() }
        // A leading dot would hide the file, or make it the name of a folder.
        let visible = name.drop { $0 == "." || $0 == " " }
        return visible.isEmpty ? nil : String(visible)
    }

    /// The parameter `filename*` (RFC 8187, in UTF-8), otherwise `filename` (RFC 6266 section 4.3).
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

    /// The parts between semicolons outside quotation marks.
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

    /// Decodes percent-encoding. Returns `nil` if it is malformed or the result is not valid UTF-8.
    private static func decoded(_ text: String) -> String? {
        PercentCoding.decode(text.utf8).flatMap { String(validating: $0, as: UTF8.self) }
    }
}
