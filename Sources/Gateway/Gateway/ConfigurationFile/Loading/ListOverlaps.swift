import AccessPolicy
import HTTPCore
import PinfoldConfiguration

/// What the lists that rules name have in common, where the order of the rules decides.
///
/// The lists keep no texts, so that their files are read again: this is for `check`, which may take
/// a second for it.
struct ListOverlaps {
    /// The most lists that are compared with each other.
    private static let mostLists = 16
    /// The most names that are shown of a pair.
    private static let mostNames = 3

    private let lists: [AccessList]

    init(of access: AccessConfiguration) {
        let named = Set(access.rules.flatMap(\.lists))
        lists = Array(access.lists.filter { named.contains($0.name) }.prefix(Self.mostLists))
    }

    /// A line for each list of which something is in another list too.
    var lines: [String] {
        guard lists.count > 1 else { return [] }
        return lists.indices.flatMap { index -> [String] in
            var others = lists
            let list = others.remove(at: index)
            var found = Found(others.map { Common(list: $0.name, domains: $0.domains) })
            // What has changed since the list was read is compared the next time.
            guard list.forEachEntry(into: &found) else { return [] }
            return found.common.filter { $0.count > 0 }.map { common in
                var shown = common.names.joined(separator: ", ")
                let more = common.count - common.names.count
                if more > 0 { shown += " and \(more) more" }
                let what = common.count == 1 ? "entry" : "entries"
                return "Lists: \(common.count) \(what) of \(list.name) in \(common.list) too: "
                    + shown
            }
        }
    }

    /// What another list has of one.
    private struct Common {
        let list: String
        let domains: DomainList
        var count = 0
        var names: [String] = []

        mutating func add(_ text: () -> String) {
            count += 1
            if names.count < ListOverlaps.mostNames { names.append(text()) }
        }
    }

    /// Looks each entry up in the other lists.
    private struct Found: DomainListSink {
        var common: [Common]

        init(_ common: [Common]) { self.common = common }

        mutating func add(_ name: Span<UInt8>, _ reach: DomainReach) {
            if case .exception = reach { return }
            for index in common.indices where common[index].domains.contains(host: name) {
                common[index].add { name.text(at: ByteRange(from: 0, to: name.count)) }
            }
        }

        mutating func add(_ network: IPNetwork, isException: Bool) {
            if isException { return }
            for index in common.indices
            where common[index].domains.contains(address: network.address) {
                common[index].add { "\(network)" }
            }
        }
    }
}
