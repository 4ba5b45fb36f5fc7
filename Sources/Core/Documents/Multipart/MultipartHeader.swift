import HTTPCore

/// Parses the header of a part, and the parameters of Content-Disposition and Content-Type.
enum MultipartHeader {
    /// Parses a header: lines that end with CRLF, the last of them empty.
    ///
    /// - Parameter offset: the offset in the body of the byte after the header.
    static func part(of header: [UInt8], offset: Int) throws(DocumentError) -> MultipartPart {
        do throws(ParseError) {
            return try part(lines: header)
        } catch {
            throw DocumentError(
                .multipart, error.reason, at: DocumentLocation(offset: offset - header.count))
        }
    }

    struct ParseError: Error {
        var reason: DocumentError.Reason

        init(_ text: String) { reason = .malformed(text) }
        init(_ reason: DocumentError.Reason) { self.reason = reason }
    }

    private static func part(lines header: [UInt8]) throws(ParseError) -> MultipartPart {
        var part = MultipartPart(name: "")
        var disposition: String?
        for line in header.split(separator: UInt8(ascii: "\n")) {
            let line = line.dropLast()
            if line.isEmpty { continue }
            let field = try field(of: line)
            part.fields.append(field)
            switch field.name.lowercasedASCII {
            case "content-disposition":
                guard disposition == nil else { throw ParseError("a repeated Content-Disposition") }
                disposition = field.value
            case "content-type":
                guard part.contentType == nil else { throw ParseError("a repeated Content-Type") }
                part.contentType = field.value
            case "content-transfer-encoding":
                // RFC 7578 §4.7: parts should not have it; these values change nothing.
                guard ["7bit", "8bit", "binary"].contains(field.value.lowercasedASCII) else {
                    throw ParseError("a part with a transfer encoding")
                }
            default: break
            }
        }
        guard let disposition else { throw ParseError("a part without Content-Disposition") }
        try read(disposition, into: &part)
        return part
    }

    private static func field(of line: ArraySlice<UInt8>) throws(ParseError) -> MultipartField {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex,
            line[..<colon].allSatisfy(ASCII.isToken)
        else { throw ParseError("a line of a part's header that is not a field") }
        let value = line[(colon + 1)...].withoutOuterSpace
        guard value.allSatisfy({ ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 }) else {
            throw ParseError("a control character in a part's header")
        }
        guard let text = String(validating: value, as: UTF8.self) else {
            throw ParseError(.encoding)
        }
        return MultipartField(
            name: String(decoding: line[..<colon], as: UTF8.self), value: text)
    }

    private static func read(
        _ disposition: String, into part: inout MultipartPart
    ) throws(ParseError) {
        let (kind, parameters) = try parameters(of: disposition)
        guard kind.lowercasedASCII == "form-data" else {
            throw ParseError("a part that is not form-data")
        }
        // RFC 7578 §4.2 forbids `filename*`, and nobody sends names in pieces (RFC 2231): a reader
        // that supports them sees a file, or a name, where others see none.
        for name in parameters.keys where name.utf8.contains(UInt8(ascii: "*")) {
            guard name.hasPrefix("filename*") else {
                throw ParseError("a part with split parameters")
            }
            // Some clients write non-ASCII names this way: every reader treats it as a file.
            throw ParseError(.unrepresentable("a file whose name is given by filename*"))
        }
        guard let name = parameters["name"] else { throw ParseError("a part without a name") }
        part.name = decoded(name)
        part.fileName = parameters["filename"].map(decoded)
    }

    /// Decodes what a browser writes for the characters that it escapes (WHATWG HTML,
    /// "multipart/form-data encoding algorithm"): no other percent sign has a meaning.
    private static func decoded(_ text: String) -> String {
        guard text.utf8.contains(UInt8(ascii: "%")) else { return text }
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.first {
            let escape = rest.prefix(3).map(ASCII.lowercased)
            let meant: UInt8? =
                switch escape {
                case Array("%22".utf8): UInt8(ascii: "\"")
                case Array("%0d".utf8): UInt8(ascii: "\r")
                case Array("%0a".utf8): UInt8(ascii: "\n")
                default: nil
                }
            bytes.append(meant ?? byte)
            rest = rest.dropFirst(meant == nil ? 1 : 3)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The value before the first semicolon, and the parameters, with their names in lower case.
    ///
    /// Inside quotation marks only `\"` is an escape, for a quotation mark, as curl writes it;
    /// browsers write a backslash as it is, and a quotation mark as `%22`.
    static func parameters(
        of value: String
    ) throws(ParseError) -> (value: String, parameters: [String: String]) {
        var rest = Array(value.utf8)[...]
        let first = rest.prefix { $0 != UInt8(ascii: ";") }
        rest = rest.dropFirst(first.count)
        var parameters: [String: String] = [:]
        while !rest.isEmpty {
            rest = rest.dropFirst().drop(while: ASCII.isWhitespace)
            if rest.isEmpty { break }
            let name = rest.prefix(while: ASCII.isToken)
            rest = rest.dropFirst(name.count)
            guard !name.isEmpty, rest.first == UInt8(ascii: "=") else {
                throw ParseError("a parameter without a value")
            }
            rest = rest.dropFirst()
            let key = String(decoding: name.map(ASCII.lowercased), as: UTF8.self)
            let text = try parameterValue(&rest, isBoundary: key == "boundary")
            rest = rest.drop(while: ASCII.isWhitespace)
            guard rest.isEmpty || rest.first == UInt8(ascii: ";") else {
                throw ParseError("text after a parameter's value")
            }
            guard parameters.updateValue(text, forKey: key) == nil else {
                throw ParseError("a repeated parameter")
            }
        }
        return (String(decoding: first.withoutOuterSpace, as: UTF8.self), parameters)
    }

    /// Whether a byte may be in an unquoted boundary, although it is not a token character.
    private static func isBareBoundary(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "="), UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: ":"): true
        default: false
        }
    }

    /// - Parameter isBoundary: whether it may contain characters that the grammar requires to be
    ///   quoted but often are not.
    private static func parameterValue(
        _ rest: inout ArraySlice<UInt8>, isBoundary: Bool
    ) throws(ParseError) -> String {
        let mark = UInt8(ascii: "\"")
        guard rest.first == mark else {
            let token = rest.prefix {
                ASCII.isToken($0) || isBoundary && isBareBoundary($0)
            }
            guard !token.isEmpty else { throw ParseError("a parameter without a value") }
            rest = rest.dropFirst(token.count)
            return String(decoding: token, as: UTF8.self)
        }
        var text: [UInt8] = []
        var index = rest.startIndex + 1
        while index < rest.endIndex, rest[index] != mark {
            let isEscape =
                rest[index] == UInt8(ascii: "\\") && index + 1 < rest.endIndex
                && rest[index + 1] == mark
            text.append(isEscape ? mark : rest[index])
            index += isEscape ? 2 : 1
        }
        guard index < rest.endIndex else {
            throw ParseError("a parameter without its closing quote")
        }
        rest = rest[(index + 1)...]
        return String(decoding: text, as: UTF8.self)
    }
}
