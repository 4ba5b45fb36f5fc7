import HTTPCore
import Trust

/// Finds the first of many lists of host patterns that matches a host, without scanning them.
///
/// Names are looked up by hash: the whole name among the exact patterns, and the rest after each
/// dot among the wildcards. The hash is computed from the last byte to the first, so that one pass
/// over the name gives the hashes of all its suffixes. A lookup does not allocate.
package struct HostIndex: Sendable, Equatable {
    private let exact: NameTable
    private let oneLabel: NameTable
    private let anyDepth: NameTable
    /// Patterns that are addresses, by address (an IPv4-mapped one as the IPv4 address).
    private let addresses: [IPAddress: [Candidate]]
    private let isEmpty: Bool

    /// A pattern's port and the entry it belongs to.
    struct Candidate: Sendable, Equatable {
        /// The port, or 0 for every port.
        var port: UInt16
        var entry: Int

        func matches(_ port: UInt16) -> Bool { self.port == 0 || self.port == port }
    }

    /// Builds the index; `patterns[i]` are the patterns of entry `i`. The pattern for everything is
    /// left to the owner: it only ever matches last.
    package init(patterns: [[HostPattern]]) {
        var exact: [[UInt8]: [Candidate]] = [:]
        var oneLabel: [[UInt8]: [Candidate]] = [:]
        var anyDepth: [[UInt8]: [Candidate]] = [:]
        var addresses: [IPAddress: [Candidate]] = [:]
        for (entry, group) in patterns.enumerated() {
            for pattern in group where pattern != .everything {
                // The normalized text of a pattern shows its kind and its name.
                let candidate = Candidate(port: pattern.port ?? 0, entry: entry)
                var text = Substring(pattern.description)
                if let port = pattern.port { text = text.dropLast("\(port)".count + 1) }
                if text.hasPrefix("**.") {
                    anyDepth[Array(text.dropFirst(3).utf8), default: []].append(candidate)
                } else if text.hasPrefix("*.") {
                    oneLabel[Array(text.dropFirst(2).utf8), default: []].append(candidate)
                } else if let address = IPAddress(literal: text.utf8.span)?.unmapped {
                    addresses[address, default: []].append(candidate)
                } else {
                    exact[Array(text.utf8), default: []].append(candidate)
                }
            }
        }
        self.exact = NameTable(exact)
        self.oneLabel = NameTable(oneLabel)
        self.anyDepth = NameTable(anyDepth)
        self.addresses = addresses
        isEmpty = patterns.allSatisfy(\.isEmpty)
    }

    /// The lowest index of an entry with a pattern that matches, or `nil` if there is none. The
    /// result is the same as with ``HostPattern/matches(host:port:)``: case and a trailing dot are
    /// ignored.
    /// - Parameters:
    ///   - host: A name, an IPv4 address, or an IPv6 address with or without brackets; no port.
    ///   - port: The port of the request's target.
    package func entry(host: Span<UInt8>, port: UInt16) -> Int? {
        if isEmpty { return nil }
        var best = Int.max
        if !addresses.isEmpty, let address = IPAddress(literal: host)?.unmapped {
            for candidate in addresses[address] ?? [] where candidate.matches(port) {
                best = min(best, candidate.entry)
            }
        }
        var count = host.count
        if count > 0, host[count - 1] == UInt8(ascii: ".") { count -= 1 }
        var hash = FNV1a.start
        var firstLabelEnd = count
        var hashAfterFirstLabel = hash
        var index = count
        while index > 0 {
            index -= 1
            let byte = host[index]
            if byte == UInt8(ascii: ".") {
                firstLabelEnd = index
                hashAfterFirstLabel = hash
                if index > 0 {
                    let ending = (index + 1)..<count
                    best = min(best, anyDepth.find(hash, host, ending, port))
                }
            }
            hash = NameTable.mixed(hash, byte)
        }
        let whole = 0..<count
        best = min(best, exact.find(hash, host, whole, port))
        best = min(best, anyDepth.find(hash, host, whole, port))
        if firstLabelEnd > 0, firstLabelEnd < count {
            let ending = (firstLabelEnd + 1)..<count
            best = min(best, oneLabel.find(hashAfterFirstLabel, host, ending, port))
        }
        return best == .max ? nil : best
    }

    /// The same for bytes in memory that the caller keeps valid during the call.
    package func entry(host: UnsafeRawBufferPointer, port: UInt16) -> Int? {
        entry(host: host.octets, port: port)
    }
}

/// A hash table of names: open addressing in flat arrays.
private struct NameTable: Sendable, Equatable {
    /// One name and its candidates, as ranges of the flat arrays.
    private struct Slot: Sendable, Equatable {
        var hash: UInt64
        var name: Range<Int32>
        var candidates: Range<Int32>
    }

    /// Sorted by name, so that equal tables are equal arrays.
    private var slots: [Slot] = []
    private var nameBytes: [UInt8] = []
    /// The candidates of each name, in the order of their entries.
    private var candidates: [HostIndex.Candidate] = []
    /// Indices into `slots`, -1 if free; the count is a power of two, at most half full.
    private var table: [Int32] = []

    /// The hash of one byte more; names are hashed in lower case, last byte first.
    @inline(__always)
    static func mixed(_ hash: UInt64, _ byte: UInt8) -> UInt64 {
        FNV1a.adding(ASCII.lowercased(byte), to: hash)
    }

    /// Creates a table of lower-case names.
    init(_ names: [[UInt8]: [HostIndex.Candidate]]) {
        guard !names.isEmpty else { return }
        for (name, group) in names.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
            let hash = name.reversed().reduce(FNV1a.start) { Self.mixed($0, $1) }
            let nameStart = Int32(nameBytes.count)
            let candidateStart = Int32(candidates.count)
            nameBytes += name
            candidates += group
            slots.append(
                Slot(
                    hash: hash, name: nameStart..<Int32(nameBytes.count),
                    candidates: candidateStart..<Int32(candidates.count)))
        }
        var capacity = 8
        while capacity < slots.count * 2 { capacity *= 2 }
        table = [Int32](repeating: -1, count: capacity)
        for index in slots.indices {
            var position = position(slots[index].hash)
            while table[position] >= 0 { position = (position + 1) & (capacity - 1) }
            table[position] = Int32(index)
        }
    }

    /// The high bits of FNV are better distributed.
    @inline(__always)
    private func position(_ hash: UInt64) -> Int {
        Int(truncatingIfNeeded: hash >> 32) & (table.count - 1)
    }

    /// The lowest entry with the name in `host[range]`; `Int.max` if there is none.
    @inline(__always)
    func find(_ hash: UInt64, _ host: Span<UInt8>, _ range: Range<Int>, _ port: UInt16) -> Int {
        table.isEmpty ? .max : search(hash, host, range, port)
    }

    private func search(
        _ hash: UInt64, _ host: Span<UInt8>, _ range: Range<Int>, _ port: UInt16
    ) -> Int {
        var position = position(hash)
        while table[position] >= 0 {
            let slot = slots[Int(table[position])]
            if slot.hash == hash, isName(slot, host, range) {
                for index in slot.candidates where candidates[Int(index)].matches(port) {
                    return candidates[Int(index)].entry
                }
                return .max
            }
            position = (position + 1) & (table.count - 1)
        }
        return .max
    }

    private func isName(_ slot: Slot, _ host: Span<UInt8>, _ range: Range<Int>) -> Bool {
        guard slot.name.count == range.count else { return false }
        let start = Int(slot.name.lowerBound)
        return host.extracting(range).equals(
            lowercase: nameBytes.span.extracting(start..<start + range.count))
    }
}
