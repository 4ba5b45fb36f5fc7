/// What there is of a cache key, but for the responses themselves: by which names they vary, and
/// which instance of the key they belong to.
///
/// A response belongs to the instance that was there when its request was sent, and counts only as
/// long as it is there: to delete this one record removes all variants of the key at once, those
/// that are being fetched included, whoever fetches them.
package struct SharedIndex: Sendable, Hashable {
    package let instance: SharedToken
    /// The different lists of names that responses nominate, as in `CacheLevel.varyNames`; that of
    /// a response without Vary is empty.
    package private(set) var names: [[UInt8]]

    /// Lists of names at most: a key whose responses vary by more is not kept here.
    package static let maximumNames = 8
    /// Bytes of a list of names at most.
    package static let maximumNameBytes = 8192

    /// A key of which nothing is known yet.
    package init(instance: SharedToken) {
        self.instance = instance
        names = []
    }

    /// Notes another list of names.
    /// - Returns: `false` if there are too many.
    package mutating func add(_ list: [UInt8]) -> Bool {
        if names.contains(list) { return true }
        guard names.count < Self.maximumNames, list.count <= Self.maximumNameBytes else {
            return false
        }
        names.append(list)
        return true
    }

    /// The record to be stored; `nil` only if the library is out of memory.
    package func record(under name: [UInt8], by keyring: SharedKeyring) -> [UInt8]? {
        let lists = names.flatMap { SharedBytes.number(UInt32($0.count)) + $0 }
        return SharedRecord.write(
            .index, [(.instance, instance.bytes), (.varyNames, lists)], under: name, by: keyring)
    }

    /// Reads a record.
    package init(
        _ bytes: UnsafeRawBufferPointer, under name: [UInt8], by keyring: SharedKeyring
    ) throws(SharedRecordError) {
        let record = try SharedRecord.alone(.index, bytes, under: name, by: keyring)
        instance = SharedToken(
            try record.content(.instance, bytes, count: SharedToken.byteCount))
        names = []
        let range = try record.required(.varyNames)
        var place = range.lowerBound
        while place < range.upperBound {
            guard range.upperBound - place >= 4 else { throw .malformed }
            let count = Int(SharedBytes.number(bytes, at: place, as: UInt32.self))
            place += 4
            guard count <= range.upperBound - place else { throw .malformed }
            let list = [UInt8](bytes[place..<place + count])
            guard !names.contains(list), add(list) else { throw .malformed }
            place += count
        }
    }
}
