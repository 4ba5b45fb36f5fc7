/// What there is of a cache key, but for the responses themselves: which instance of the key they
/// belong to.
///
/// A response belongs to the instance that was there when its request was sent, and counts only as
/// long as it is there: to delete this one record removes all variants of the key at once, those
/// that are being fetched included, whoever fetches them.
package struct SharedIndex: Sendable, Hashable {
    package let instance: SharedToken
    /// Of a generation: which history of the engine's data it is of, by the engine's own name for
    /// that; `nil` if an earlier version has begun it.
    package let history: [UInt8]?

    /// The index of an instance.
    package init(instance: SharedToken, history: [UInt8]? = nil) {
        self.instance = instance
        self.history = history
    }

    /// The record to be stored; `nil` only if the library is out of memory.
    package func record(under name: [UInt8], by keyring: SharedKeyring) -> [UInt8]? {
        // Gateways of earlier versions use no index without the second field.
        let fields: [(SharedField, [UInt8])] = [(.instance, instance.bytes), (.varyNames, [])]
        return SharedRecord.write(
            .index, fields + (history.map { [(.history, $0)] } ?? []), under: name, by: keyring)
    }

    /// Reads a record.
    package init(
        _ bytes: UnsafeRawBufferPointer, under name: [UInt8], by keyring: SharedKeyring
    ) throws(SharedRecordError) {
        let record = try SharedRecord.alone(.index, bytes, under: name, by: keyring)
        instance = SharedToken(
            try record.content(.instance, bytes, count: SharedToken.byteCount))
        history = record.range(.history).map { [UInt8](bytes[$0]) }
    }
}
