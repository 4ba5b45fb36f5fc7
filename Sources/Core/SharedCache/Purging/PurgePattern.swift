/// What is purged: the same patterns with the same meanings as in a gateway's own store (`Purge`).
package enum PurgePattern: Sendable, Hashable {
    /// Which hosts a name stands for.
    package enum Reach: UInt8, Sendable, Hashable, CaseIterable {
        /// That host.
        case exact
        /// Those with one more label.
        case oneLabel
        /// That host and all below it.
        case anyDepth
    }

    case everything
    /// - Parameters:
    ///   - name: in lower case, without wildcard and port.
    ///   - port: `nil` for every port.
    case host(Reach, name: [UInt8], port: UInt16?)
    /// - Parameter origin: only responses of `scheme://host[:port]`; `nil` for those of all.
    case tag([UInt8], origin: [UInt8]?)
    /// All URIs that begin with these bytes.
    case prefix([UInt8])
    /// This URI, by every route.
    case key([UInt8])

    /// Bytes of each part at most.
    package static let maximumBytes = 16 << 10

    // MARK: As bytes

    /// Kind, port, two lengths (8, 16, 16 and 16 bits), and the parts.
    package var bytes: [UInt8] {
        var (kind, port, first, second) = (UInt8(0), UInt16(0), [UInt8](), [UInt8]())
        switch self {
        case .everything: break
        case .host(let reach, let name, let number):
            (kind, port, first) = (1 + reach.rawValue, number ?? 0, name)
        case .tag(let tag, let origin):
            (kind, first, second) = (origin == nil ? 4 : 5, tag, origin ?? [])
        case .prefix(let prefix): (kind, first) = (6, prefix)
        case .key(let uri): (kind, first) = (7, uri)
        }
        return [kind] + SharedBytes.number(port) + SharedBytes.number(UInt16(first.count))
            + SharedBytes.number(UInt16(second.count)) + first + second
    }

    /// Whether its parts are short enough to be written.
    package var isWithinLimits: Bool {
        switch self {
        case .everything: true
        case .host(_, let name, _): name.count <= Self.maximumBytes
        case .tag(let tag, let origin):
            max(tag.count, origin?.count ?? 0) <= Self.maximumBytes
        case .prefix(let bytes), .key(let bytes): bytes.count <= Self.maximumBytes
        }
    }

    private static let headerBytes = 7

    /// Reads what ``bytes`` has written; `nil` for anything else.
    package init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= Self.headerBytes else { return nil }
        let port: UInt16 = SharedBytes.number(bytes, at: 1)
        let firstCount = Int(SharedBytes.number(bytes, at: 3, as: UInt16.self))
        let secondCount = Int(SharedBytes.number(bytes, at: 5, as: UInt16.self))
        guard max(firstCount, secondCount) <= Self.maximumBytes,
            bytes.count == Self.headerBytes + firstCount + secondCount
        else { return nil }
        let first = [UInt8](bytes[Self.headerBytes..<Self.headerBytes + firstCount])
        let second = [UInt8](bytes[(Self.headerBytes + firstCount)...])
        guard bytes[0] == 5 || second.isEmpty, (1...3).contains(bytes[0]) || port == 0 else {
            return nil
        }
        switch bytes[0] {
        case 0:
            guard first.isEmpty else { return nil }
            self = .everything
        case 1...3:
            guard let reach = Reach(rawValue: bytes[0] - 1), !first.isEmpty else { return nil }
            self = .host(reach, name: first, port: port == 0 ? nil : port)
        case 4: self = .tag(first, origin: nil)
        case 5: self = .tag(first, origin: second)
        case 6: self = .prefix(first)
        case 7: self = .key(first)
        default: return nil
        }
    }
}
