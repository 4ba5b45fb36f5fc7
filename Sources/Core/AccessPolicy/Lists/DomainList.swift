import HTTPCore

/// The domains and networks of a list, from one or several files. Immutable; made by a
/// ``DomainListBuilder``.
///
/// The text of the files is not kept. A name takes about 18 bytes, whatever its length.
package final class DomainList: Sendable, Equatable {
    /// What exceptions of one file apply to.
    struct Part: Equatable {
        var names: NameTable
        var networks = AddressRanges()
        var exceptedNetworks = AddressRanges()

        var hasExceptions: Bool { names.hasExceptions || !exceptedNetworks.isEmpty }
    }

    private let parts: [Part]
    private let hasNetworks: Bool
    /// How many different names there are, exceptions included.
    package let nameCount: Int
    /// How many ranges of addresses there are, exceptions included; networks that touch are one.
    package let networkCount: Int

    /// A list of nothing.
    package convenience init() { self.init(parts: []) }

    init(parts: [Part]) {
        self.parts = parts
        nameCount = parts.reduce(0) { $0 + $1.names.count }
        networkCount = parts.reduce(0) { $0 + $1.networks.count + $1.exceptedNetworks.count }
        hasNetworks = networkCount > 0
    }

    /// Whether the list covers a host: an entry of a file does, and no exception of that file. Does
    /// not allocate. Case and a dot at the end are ignored.
    ///
    /// - Parameter host: a name, an IPv4 address, or an IPv6 address with or without brackets; no
    ///   port. Any other bytes are covered by nothing.
    package func contains(host: Span<UInt8>) -> Bool {
        host.withUnsafeBytes { contains(host: $0) }
    }

    /// The same for bytes in memory that the caller keeps valid during the call.
    package func contains(host: UnsafeRawBufferPointer) -> Bool {
        var count = host.count
        if count > 1, host[count - 1] == UInt8(ascii: ".") { count -= 1 }
        let name = UnsafeRawBufferPointer(rebasing: host[..<count])
        if hasNetworks, let address = IPAddress(literal: name.octets) {
            return contains(address: address)
        }
        for part in parts where part.names.covers(name) { return true }
        return false
    }

    /// Whether the list covers an address.
    package func contains(address: IPAddress) -> Bool {
        for part in parts
        where part.networks.contains(address) && !part.exceptedNetworks.contains(address) {
            return true
        }
        return false
    }

    /// Whether two lists cover the same by the same entries: at once for one and the same list,
    /// else in some milliseconds for a million names. Lists made with different keys are not equal.
    package static func == (left: DomainList, right: DomainList) -> Bool {
        left === right || left.parts == right.parts
    }
}

/// Makes a ``DomainList`` from what is read of its files.
package struct DomainListBuilder: DomainListSink {
    /// A name takes about this many bytes of a file with its line's end.
    private static let bytesPerName = 16

    private let key: DomainListKey
    private let expected: Int
    private let pausing: () -> Void
    /// The file that is being read.
    private var file: DomainList.Part
    /// All files without exceptions, which are one part.
    private var union: DomainList.Part?
    private var parts: [DomainList.Part] = []

    /// - Parameters:
    ///   - key: the same for all lists that are compared.
    ///   - bytes: the size of all files, for the memory to take; only an estimate.
    ///   - pausing: called after every few hundred microseconds of work that is not reading, so
    ///     that a thread can let others run.
    package init(key: DomainListKey, bytes: Int, pausing: @escaping () -> Void = {}) {
        self.key = key
        self.pausing = pausing
        expected = bytes / Self.bytesPerName
        file = DomainList.Part(names: NameTable(key, expecting: expected))
    }

    package mutating func add(_ name: Span<UInt8>, _ reach: DomainReach) {
        file.names.insert(name, reach)
    }

    package mutating func add(_ network: IPNetwork, isException: Bool) {
        if isException {
            file.exceptedNetworks.insert(network)
        } else {
            file.networks.insert(network)
        }
    }

    /// Ends a file: exceptions apply to what was added since the last one ended.
    package mutating func endFile() {
        var ended = DomainList.Part(names: NameTable(key, expecting: expected))
        swap(&ended, &file)
        // Everything is changed in place: a copy would double the memory.
        if ended.hasExceptions {
            ended.seal(pausing: pausing)
            parts.append(ended)
        } else if union == nil {
            union = ended
        } else {
            union?.names.formUnion(ended.names)
            union?.networks.formUnion(ended.networks)
        }
    }

    /// The list of the files that have ended. Nothing can be added any more.
    package mutating func finish() -> DomainList {
        let pausing = pausing
        union?.seal(pausing: pausing)
        if let union { parts.append(union) }
        return DomainList(parts: parts)
    }
}

extension DomainList.Part {
    fileprivate mutating func seal(pausing: () -> Void) {
        names.seal(pausing: pausing)
        networks.seal()
        exceptedNetworks.seal()
    }
}
