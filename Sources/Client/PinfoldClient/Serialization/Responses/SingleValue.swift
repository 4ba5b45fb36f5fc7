import Documents
public import HTTPTypes

/// A field that may have only one value occurs on several lines with different values, so it is
/// unclear which one was meant.
public struct ConflictingFieldLinesError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The name of the field.
    public let name: HTTPField.Name
    /// The distinct values, in the order of the lines.
    public let values: [String]

    /// How many values, and how many characters of each, the description shows.
    private static let shown = (values: 4, characters: 80)

    /// What is wrong, as a phrase within a sentence.
    public var description: String {
        var list = values.prefix(Self.shown.values).map { String($0.prefix(Self.shown.characters)) }
        if values.count > list.count { list.append("…") }
        let text = list.joined(separator: ", ")
        return "\(values.count) different \(name.rawName) fields (\(text))"
    }
}

extension HTTPFields {
    /// Returns the value of a field that has only one, such as Location, or `nil` if there is none.
    ///
    ///     let location = try response.headerFields.single(.location)
    ///
    /// The subscript joins all lines with commas, which is right only for lists (RFC 9110 section
    /// 5.3): it turns two lines `Location: /one` into `/one, /one`. Here, equal lines count once. A
    /// value that is not valid UTF-8 is decoded as ISO 8859-1, as RFC 2616 had it.
    ///
    /// - Throws: ``ConflictingFieldLinesError`` if there are different values.
    public func single(_ name: HTTPField.Name) throws(ConflictingFieldLinesError) -> String? {
        try singleBytes(name).map(Self.text)
    }

    /// Returns the value's bytes as they were sent. They need not be valid UTF-8.
    public func singleBytes(_ name: HTTPField.Name) throws(ConflictingFieldLinesError) -> [UInt8]? {
        var lines: [[UInt8]] = []
        for field in self[fields: name] {
            let line = field.withUnsafeBytesOfValue { Array($0) }
            if !lines.contains(line) { lines.append(line) }
        }
        guard lines.count <= 1 else {
            throw ConflictingFieldLinesError(name: name, values: lines.map(Self.text))
        }
        return lines.first
    }

    private static func text(_ bytes: [UInt8]) -> String {
        String(validating: bytes, as: UTF8.self)
            ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }
}

extension HTTPResponse {
    /// The type in the Content-Type field, or `nil` if there is none.
    ///
    /// Lines that differ do not denote any type: the result is then all their types, separated by
    /// commas, which no serializer accepts by name.
    package var contentType: ContentType? {
        do throws(ConflictingFieldLinesError) {
            return ContentType(ofResponse: try headerFields.single(.contentType))
        } catch {
            return ContentType(
                error.values.map { ContentType(ofResponse: $0)?.essence ?? "" }.joined(
                    separator: ", "))
        }
    }
}
