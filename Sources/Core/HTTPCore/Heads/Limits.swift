/// The limits of one message head. A head at a limit is accepted, one past it refused.
package struct HeadLimits: Sendable, Equatable {
    /// Bytes of a head from its first byte to the end of the empty line: 431 beyond.
    package var headBytes: Int
    /// Field lines in a head: 431 beyond.
    package var fields: Int
    /// Bytes of a request target: 414 beyond.
    package var targetBytes: Int
    /// Bytes of a method: 501 beyond (RFC 9112 §3).
    package var methodBytes: Int
    /// Options over all Connection fields: 400 beyond. Each is compared with each unknown field's
    /// name, so this bounds work, not memory.
    package var connectionOptions: Int

    /// Limits with the given values, all positive; `headBytes` and `targetBytes` below 2^31.
    package init(
        headBytes: Int = 32 * 1024, fields: Int = 128, targetBytes: Int = 16 * 1024,
        methodBytes: Int = 32, connectionOptions: Int = 32
    ) {
        precondition(headBytes > 0 && headBytes < Int(Int32.max))
        precondition(targetBytes > 0 && targetBytes < Int(Int32.max))
        precondition(fields > 0 && methodBytes > 0 && connectionOptions > 0)
        self.headBytes = headBytes
        self.fields = fields
        self.targetBytes = targetBytes
        self.methodBytes = methodBytes
        self.connectionOptions = connectionOptions
    }
}

/// The limits of one chunked body (RFC 9112 §7.1), data apart.
package struct ChunkedLimits: Sendable, Equatable {
    /// Bytes of chunk extensions over the whole message, semicolons included: 413 beyond.
    package var extensionBytes: Int
    /// Bytes of the trailer section with its empty line: 431 beyond.
    package var trailerBytes: Int
    /// Field lines in the trailer section: 431 beyond.
    package var trailerFields: Int

    /// Limits with the given values.
    package init(
        extensionBytes: Int = 4096, trailerBytes: Int = 8 * 1024, trailerFields: Int = 32
    ) {
        precondition(trailerBytes > 0 && trailerBytes < Int(Int32.max))
        self.extensionBytes = extensionBytes
        self.trailerBytes = trailerBytes
        self.trailerFields = trailerFields
    }
}
