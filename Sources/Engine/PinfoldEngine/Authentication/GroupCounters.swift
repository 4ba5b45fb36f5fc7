import Authentication
import PinfoldConfiguration
import PinfoldMetrics

/// The counts of the groups of those who ask, under one configuration.
///
/// The groups of a signed token are what its issuer writes into it. Only those have counts of their
/// own that a rule or a file names, and not more than ``limit``; a member of any others counts once
/// with `other`, and a member of none with `none`. A member of several groups counts in each.
final class GroupCounters: Sendable {
    /// The most groups with counts of their own.
    static let limit = 256
    /// Those who are in no group.
    private static let none = "none"
    /// Those who are in groups without counts of their own.
    private static let other = "other"

    private let counts: [String: EventCounts<GroupEvent>]
    private let ofNone: [EventCounts<GroupEvent>]
    private let ofOther: EventCounts<GroupEvent>

    /// - Returns: `nil` if no listener asks.
    init?(_ configuration: ConfigurationSnapshot, _ labels: RouteLabels) {
        let names = Self.names(for: configuration)
        let made = labels.groupCounts(names)
        guard let none = made.first, let other = made.dropFirst().first else { return nil }
        ofNone = [none]
        ofOther = other
        counts = Dictionary(
            zip(names, made).dropFirst(2).map { ($0, $1) }, uniquingKeysWith: { first, _ in first })
    }

    /// The names of what is counted under a configuration: `none`, `other`, and the groups with
    /// counts of their own, those that rules name before those of files. Empty if no listener asks.
    static func names(for configuration: ConfigurationSnapshot) -> [String] {
        guard configuration.asksWho else { return [] }
        let fixed = [none, other]
        var known = Set(fixed)
        let groups =
            configuration.access.rules.flatMap(\.groups) + configuration.authentication.groupNames
        return fixed + groups.filter { known.insert($0).inserted }.prefix(limit)
    }

    /// The counts of each group of somebody, each once; never empty.
    func counts(of identity: Identity) -> [EventCounts<GroupEvent>] {
        guard !identity.groups.isEmpty else { return ofNone }
        let own = identity.groups.compactMap { counts[$0] }
        return own.count < identity.groups.count ? own + [ofOther] : own
    }
}

/// The counts of those who have last asked on one thread, so that the names of their groups are not
/// looked up for each request, nor references counted: it is about 75 instructions for a member of
/// one group, and 10 for each other one.
final class RecentMembers {
    private typealias Counts = Unmanaged<EventCounts<GroupEvent>>

    private struct Entry {
        /// Kept, so that no other one comes to be in its place in memory.
        let identity: Unmanaged<Identity>
        /// Of its groups, which keep them.
        let counts: UnsafeMutableBufferPointer<Counts>

        func free() {
            identity.release()
            counts.deallocate()
        }
    }

    /// How many are kept: a power of two.
    private static let limit = 256

    /// By where the identities are in memory; `nil` until something is counted.
    private var entries: UnsafeMutablePointer<Entry?>?
    /// Whose counts they are.
    private var groups: GroupCounters?

    deinit {
        clear()
        entries?.deallocate()
    }

    /// Counts an exchange in each group of who asked.
    func count(_ record: ExchangeRecord, of identity: Identity, by groups: GroupCounters) {
        if groups !== self.groups { adopt(groups) }
        guard let entries else { return }
        let place = entries + Self.slot(of: identity)
        if place.pointee?.identity.toOpaque() != Unmanaged.passUnretained(identity).toOpaque() {
            fill(place, with: identity, groups)
        }
        guard let counts = place.pointee?.counts else { return }
        for own in counts {
            own._withUnsafeGuaranteedRef { own in
                own.add(to: .exchanges)
                if record.requestBytes > 0 { own.add(record.requestBytes, to: .bytesReceived) }
                if record.responseBytes > 0 { own.add(record.responseBytes, to: .bytesSent) }
            }
        }
    }

    @inline(never)
    private func adopt(_ groups: GroupCounters) {
        clear()
        self.groups = groups
        let entries = entries ?? .allocate(capacity: Self.limit)
        entries.initialize(repeating: nil, count: Self.limit)
        self.entries = entries
    }

    @inline(never)
    private func fill(
        _ place: UnsafeMutablePointer<Entry?>, with identity: Identity, _ groups: GroupCounters
    ) {
        place.pointee?.free()
        let found = groups.counts(of: identity)
        let counts = UnsafeMutableBufferPointer<Counts>.allocate(capacity: found.count)
        _ = counts.initialize(fromContentsOf: found.map { Counts.passUnretained($0) })
        place.pointee = Entry(identity: .passRetained(identity), counts: counts)
    }

    private func clear() {
        guard let entries else { return }
        for slot in 0..<Self.limit { entries[slot]?.free() }
    }

    /// Multiplied (by 2^64 divided by the golden ratio), because addresses are alike in their last
    /// bits.
    private static func slot(of identity: Identity) -> Int {
        let address = UInt64(UInt(bitPattern: ObjectIdentifier(identity)))
        return Int((address &* 0x9E37_79B9_7F4A_7C15) >> 56)
    }
}
