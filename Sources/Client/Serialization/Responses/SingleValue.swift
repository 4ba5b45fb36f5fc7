import Documents
public import HTTPTypes

/// A field that has one value came on several lines that differ: which of them its sender meant
/// nobody can tell.
public struct ConflictingFieldLines: Error, Sendable, Hashable, CustomStringConvertible {
    /// Whose lines they are.
    public let name: HTTPField.Name
    /// What the lines say, each once, in their order.
    public let values: [String]

    /// How many values, and of each how many characters, a description shows.
    private static let shown = (values: 4, characters: 80)

    /// What is wrong, for a sentence.
    public var description: String {
        var list = values.prefix(Self.shown.values).map { String($0.prefix(Self.shown.characters)) }
        if values.count > list.count { list.append("…") }
        let text = list.joined(separator: ", ")
        return "\(values.count) \(name.rawName) fields that differ (\(text))"
    }
}

extension HTTPFields {
    /// The value of a field that has one, such as Location; nil: there is none.
    ///
    ///     let place = try response.headerFields.single(.location)
    ///
    /// The subscript joins the lines of a name with commas, which only a list survives (RFC 9110
    /// section 5.3): of two `Location: /one` it makes `/one, /one`. Here lines that are equal count
    /// once. What is not UTF-8 is ISO 8859-1, as it once was by RFC 2616.
    ///
    /// - Throws: ``ConflictingFieldLines`` where lines differ.
    public func single(_ name: HTTPField.Name) throws(ConflictingFieldLines) -> String? {
        try singleBytes(name).map(Self.text)
    }

    /// The same as it was sent, which need not be UTF-8.
    public func singleBytes(_ name: HTTPField.Name) throws(ConflictingFieldLines) -> [UInt8]? {
        var lines: [[UInt8]] = []
        for field in self[fields: name] {
            let line = field.withUnsafeBytesOfValue { Array($0) }
            if !lines.contains(line) { lines.append(line) }
        }
        guard lines.count <= 1 else {
            throw ConflictingFieldLines(name: name, values: lines.map(Self.text))
        }
        return lines.first
    }

    private static func text(_ bytes: [UInt8]) -> String {
        String(validating: bytes, as: UTF8.self)
            ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }
}

extension HTTPResponse {
    /// What its Content-Type says; nil where it says nothing.
    ///
    /// Lines that differ are the type of nothing: it is all their types, between commas, which no
    /// serializer accepts by name.
    package var contentType: ContentType? {
        do throws(ConflictingFieldLines) {
            return ContentType(ofResponse: try headerFields.single(.contentType))
        } catch {
            return ContentType(
                error.values.map { ContentType(ofResponse: $0)?.essence ?? "" }.joined(
                    separator: ", "))
        }
    }
}
