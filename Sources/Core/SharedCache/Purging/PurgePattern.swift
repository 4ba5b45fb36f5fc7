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

    /// Whether it is about a response.
    package func matches(_ resource: SharedResource) -> Bool {
        switch self {
        case .everything: return true
        case .host(let reach, let name, let port):
            guard port == nil || port == resource.port else { return false }
            return Self.reaches(resource.host, from: name, reach)
        case .tag(let tag, let origin):
            return resource.tags.contains(tag) && (origin == nil || origin == resource.origin)
        case .prefix(let prefix): return resource.uri.starts(with: prefix)
        case .key(let uri): return resource.uri == uri
        }
    }

    private static func reaches(_ host: [UInt8], from name: [UInt8], _ reach: Reach) -> Bool {
        if reach != .oneLabel, host == name { return true }
        // An address has no labels.
        guard reach != .exact, host.first != UInt8(ascii: "["), host.count <= 255 else {
            return false
        }
        guard host.count > name.count, host.suffix(name.count).elementsEqual(name),
            host[host.count - name.count - 1] == UInt8(ascii: ".")
        else { return false }
        let labels = host.prefix(host.count - name.count - 1)
        return reach == .anyDepth || !labels.contains(UInt8(ascii: "."))
    }

    /// Whose generations it changes: of one scope, so that to purge is to change one record, and to
    /// look up is to read few.
    package var scope: GenerationScope {
        switch self {
        case .everything, .host(.oneLabel, _, _), .host(.anyDepth, _, _): .all
        case .host(.exact, let name, _): .host(name)
        case .tag(let tag, _): .tag(tag)
        case .prefix(let bytes): Self.host(ofPrefix: bytes).map { .host($0) } ?? .all
        case .key(let uri): .host(SharedResource(uri: uri).host)
        }
    }

    /// The host of all URIs that begin with a prefix; `nil` if they may have several.
    private static func host(ofPrefix prefix: [UInt8]) -> [UInt8]? {
        guard let parts = URIParts(prefix), parts.authority.upperBound < prefix.count else {
            return nil
        }
        return Array(prefix[parts.host])
    }

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
