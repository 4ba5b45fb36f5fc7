import Pinning

/// The first of many lists of host patterns that matches a host, found without scanning them.
package struct HostIndex: Sendable, Equatable {
    /// Builds the index; `patterns[i]` are the patterns of entry `i`.
    package init(patterns: [[HostPattern]]) {
    }

    /// The least index of an entry with a pattern that matches, or nil when none does. Nothing is
    /// allocated.
    /// - Parameters:
    ///   - host: The host name in lower case, or the address without brackets; no port.
    ///   - port: The port of the request's target.
    package func entry(host: Span<UInt8>, port: UInt16) -> Int? {
        nil
    }

    /// The same for bytes in memory that the caller keeps alive during the call.
    package func entry(host: UnsafeRawBufferPointer, port: UInt16) -> Int? {
        entry(host: Span(_unsafeElements: host.bindMemory(to: UInt8.self)), port: port)
    }
}
