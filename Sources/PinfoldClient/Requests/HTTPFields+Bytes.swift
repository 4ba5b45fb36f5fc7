import HTTPTypes

extension HTTPFields {
    /// The values of a name's fields, as they are sent. What is not UTF-8 is lost in their text.
    func bytes(of name: HTTPField.Name) -> [[UInt8]] {
        self[fields: name].map { field in field.withUnsafeBytesOfValue { Array($0) } }
    }

    /// The same as one list (RFC 9110 section 5.3); nil: there is none.
    func listBytes(of name: HTTPField.Name) -> [UInt8]? {
        contains(name) ? Array(bytes(of: name).joined(separator: ", ".utf8)) : nil
    }

    /// Its text. What is not UTF-8 is ISO 8859-1, as it once was by RFC 2616.
    func text(of name: HTTPField.Name) -> String? {
        guard let bytes = listBytes(of: name) else { return nil }
        return String(validating: bytes, as: UTF8.self)
            ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }
}
