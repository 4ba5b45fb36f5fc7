import HTTPTypes

extension HTTPFields {
    /// The values of a name's fields, as they are sent. What is not UTF-8 is lost in their text.
    func bytes(of name: HTTPField.Name) -> [[UInt8]] {
        self[fields: name].map { field in field.withUnsafeBytesOfValue { Array($0) } }
    }
}
