extension UnsafeRawBufferPointer {
    /// The bytes of a text in UTF-8.
    init(_ text: StaticString) {
        self.init(start: text.utf8Start, count: text.utf8CodeUnitCount)
    }
}

extension String {
    /// Calls `body` with the text in UTF-8.
    public func withBytes<Result>(
        _ body: (UnsafeRawBufferPointer) throws(DocumentError) -> Result
    ) throws(DocumentError) -> Result {
        var text = self
        let result: Swift.Result<Result, DocumentError> = text.withUTF8 { bytes in
            Swift.Result { () throws(DocumentError) in try body(UnsafeRawBufferPointer(bytes)) }
        }
        return try result.get()
    }
}

extension [UInt8] {
    /// Calls `body` with the bytes, which are valid during the call.
    public func withBytes<Result>(
        _ body: (UnsafeRawBufferPointer) throws(DocumentError) -> Result
    ) throws(DocumentError) -> Result {
        let result: Swift.Result<Result, DocumentError> = withUnsafeBytes { bytes in
            Swift.Result { () throws(DocumentError) in try body(bytes) }
        }
        return try result.get()
    }
}
