/// Who fetches a response for the whole fleet. It ends by the engine's clock, whatever becomes of
/// its holder.
package struct SharedLease: Sendable, Hashable {
    /// Whoever has taken the lease knows it; nobody else's is ended by mistake.
    package let token: SharedToken
    /// Who holds it: for those who look.
    package let gateway: [UInt8]

    /// `nil` if the name is too long.
    package init?(_ token: SharedToken, by gateway: [UInt8]) {
        guard gateway.count <= PurgeEntry.maximumGatewayBytes else { return nil }
        self.token = token
        self.gateway = gateway
    }

    /// The record to be stored.
    package func record(under name: [UInt8], by keyring: SharedKeyring) -> [UInt8]? {
        SharedRecord.write(
            .lease, [(.token, token.bytes), (.gateway, gateway)], under: name, by: keyring)
    }

    /// Reads a record.
    package init(
        _ bytes: UnsafeRawBufferPointer, under name: [UInt8], by keyring: SharedKeyring
    ) throws(SharedRecordError) {
        let record = try SharedRecord.alone(.lease, bytes, under: name, by: keyring)
        let token = SharedToken(
            try record.content(.token, bytes, count: SharedToken.byteCount))
        let gateway = [UInt8](bytes[try record.required(.gateway)])
        guard let lease = SharedLease(token, by: gateway) else { throw .malformed }
        self = lease
    }
}

/// A note that the responses to a key are not stored: nobody waits for one (hit-for-miss). It
/// expires in the engine.
package struct SharedRefusal: Sendable, Hashable {
    /// Why, for those who look: the number of a reason of the engine.
    package let reason: UInt8

    package init(reason: UInt8) { self.reason = reason }

    /// The record to be stored.
    package func record(under name: [UInt8], by keyring: SharedKeyring) -> [UInt8]? {
        SharedRecord.write(.note, [(.reason, [reason])], under: name, by: keyring)
    }

    /// Reads a record.
    package init(
        _ bytes: UnsafeRawBufferPointer, under name: [UInt8], by keyring: SharedKeyring
    ) throws(SharedRecordError) {
        let record = try SharedRecord.alone(.note, bytes, under: name, by: keyring)
        reason = try record.content(.reason, bytes, count: 1)[0]
    }
}
