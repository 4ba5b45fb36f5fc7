extension SharedToken {
    /// The number that everything names which is stored on one node of a cluster: made of the
    /// number of the generation of everything, and of what the node is. So all gateways have the
    /// same without telling each other, and what a node has kept from before is not found when it
    /// is not the same any longer. `nil` only without memory.
    /// - Parameter identity: which run of the program, and which history of its data, the node
    ///   goes on with.
    package func ofNode(_ identity: [UInt8]) -> SharedToken? {
        SharedDigest(of: bytes, identity)?.withBytes {
            SharedToken(UnsafeRawBufferPointer(rebasing: $0[..<Self.byteCount]))
        }
    }
}
