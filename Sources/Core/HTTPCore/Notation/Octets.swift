extension UnsafeRawBufferPointer {
    /// The memory's bytes as a span, valid as long as the expression that the pointer is read from:
    /// the only place where memory that the gateway manages itself becomes a span.
    @inline(__always)
    @inlinable public var octets: Span<UInt8> {
        @_lifetime(borrow self) get {
            let span = Span<UInt8>(_unsafeElements: bindMemory(to: UInt8.self))
            return _overrideLifetime(span, borrowing: self)
        }
    }
}
