import HTTPTypes

extension HTTPFields {
    /// The values of the fields with a name as they are sent. Their text loses bytes that are not
    /// valid UTF-8.
    func bytes(of name: HTTPField.Name) -> [[UInt8]] {
        self[fields: name].map { field in field.withUnsafeBytesOfValue { Array($0) } }
    }
}
