import PinReporting
import SharedCacheLevel

/// All gateways of a fleet at a glance, as one of them found them in the engine. Pure: merged from
/// what each says of itself.
struct FleetView: Sendable, Equatable {
    /// The most hosts and pins.
    static let maximumHosts = 50
    static let maximumPins = 200
    /// After that a gateway that has not said that it is there counts as away: several times as
    /// long as it takes to say so.
    static let awayMilliseconds: Int64 = 15_000

    struct Gateway: Sendable, Equatable {
        var name: String
        /// What distinguishes it from others of its name.
        var instance: String
        /// How long ago it last said that it is there, in milliseconds.
        var age: Int64
        /// Whether it has carried out all purges that are known to whoever looks.
        var isCurrent: Bool
        /// From which share on it takes a policy, in hundredths.
        var share: Int
        var report: Result<FleetReport, FleetReportError>

        var known: FleetReport? { try? report.get() }

        /// Whether it has not said for a while that it is there: it may have crashed, or not reach
        /// the engine, and is forgotten after a day.
        var isAway: Bool { age > FleetView.awayMilliseconds }

        init(_ member: FleetMember) {
            name = FleetText.shown(member.name, maximumBytes: 100)
            instance = FleetText.shown(member.instance, maximumBytes: 64)
            (age, isCurrent) = (max(0, member.age), member.isCurrent)
            share = FleetShare.least(for: member.name)
            do throws(FleetReportError) {
                report = .success(try FleetReport(member.report))
            } catch {
                report = .failure(error)
            }
        }
    }

    /// Gateways that have the same policy in force, or none.
    struct Agreement: Sendable, Equatable {
        var serial: Int64?
        var hash: String
        var gateways: [String]
    }

    /// A host entry, as each gateway that says something of it sees it.
    struct Host: Sendable, Equatable {
        var name: String
        var seen: [Sight]

        /// How many gateways see something wrong.
        var troubled: Int { seen.count { $0.isTroubled } }
        var failures: Int64 { seen.reduce(0) { $0 + $1.host.failures } }
        var requests: Int64 { seen.reduce(0) { $0 + $1.host.requests } }
    }

    struct Sight: Sendable, Equatable {
        var gateway: String
        var host: FleetReport.Host

        var isTroubled: Bool { host.notReachable > 0 || !host.troubles.isEmpty }
    }

    /// A pin that no gateway has seen in a server's chain for a week.
    struct UnseenPin: Sendable, Equatable {
        var pinset: String
        var pin: String
        /// Since when nobody has, in seconds since 1970.
        var since: Int64
        /// Whether anybody ever has, while it was watched.
        var hasMatched: Bool
        /// How many gateways watch it.
        var gateways: Int
    }

    /// The name of the gateway that says this.
    var name: String
    /// Whether the engine has answered; if not, this is what was known before.
    var isCurrent: Bool
    /// In seconds since 1970.
    var now: Int64
    var gateways: [Gateway]

    init(_ members: [FleetMember], name: String, isCurrent: Bool = true, now: Int64) {
        (self.name, self.isCurrent, self.now) = (name, isCurrent, now)
        gateways = members.map { Gateway($0) }.sorted {
            ($0.name, $0.instance) < ($1.name, $1.instance)
        }
    }

    /// The gateways that are there.
    private var present: [Gateway] { gateways.filter { !$0.isAway } }

    /// Who has which policy: the one that most have first.
    var policies: [Agreement] {
        var found: [Agreement] = []
        for gateway in present {
            guard let report = gateway.known else { continue }
            let (serial, hash) = (report.policy?.serial, report.policy?.hash ?? "")
            if let index = found.firstIndex(where: { $0.serial == serial && $0.hash == hash }) {
                found[index].gateways.append(gateway.name)
            } else {
                found.append(Agreement(serial: serial, hash: hash, gateways: [gateway.name]))
            }
        }
        return found.sorted {
            ($1.gateways.count, $1.serial ?? 0) < ($0.gateways.count, $0.serial ?? 0)
        }
    }

    /// Whether all gateways that say what they have, have the same policy.
    var agrees: Bool { policies.count <= 1 }

    /// How many gateways have yet to carry out what others have purged.
    var behind: Int { present.count { !$0.isCurrent } }

    /// How many are there.
    var count: Int { present.count }

    /// Host entries, those first in which most gateways see something wrong.
    var hosts: [Host] {
        var found: [String: [Sight]] = [:]
        for gateway in present {
            for host in gateway.known?.hosts.worst ?? [] {
                found[host.name, default: []].append(Sight(gateway: gateway.name, host: host))
            }
        }
        return Array(
            found.map { Host(name: $0.key, seen: $0.value) }
                .sorted {
                    ($1.troubled, $1.failures, $1.requests, $0.name)
                        < ($0.troubled, $0.failures, $0.requests, $1.name)
                }
                .prefix(Self.maximumHosts))
    }

    /// What all levels of all caches have found together.
    var cache: FleetReport.Cache {
        present.compactMap { $0.known?.cache }.reduce(into: FleetReport.Cache()) { sum, one in
            sum.memoryHits &+= one.memoryHits
            sum.diskHits &+= one.diskHits
            sum.sharedHits &+= one.sharedHits
            sum.lookups &+= one.lookups
        }
    }

    /// The pins that no gateway has seen for a week, although somebody's pinset has judged servers
    /// since. What a gateway does not say counts as seen.
    var unseenPins: [UnseenPin] {
        let reports = present.compactMap(\.known)
        guard reports.count == present.count, reports.allSatisfy(\.hasAllPinsets) else {
            return []
        }
        var found: [UnseenPin] = []
        for name in Set(reports.flatMap { $0.pinsets.map(\.name) }) {
            let sets = reports.compactMap { report in report.pinsets.first { $0.name == name } }
            for text in Set(sets.flatMap { $0.idle.map(\.text) }) {
                let pins = sets.compactMap { set in set.idle.first { $0.text == text } }
                // One that does not list it has seen it, or does not have it or room for it.
                guard pins.count == sets.count else { continue }
                let matched = pins.compactMap(\.matched).max()
                let since = matched ?? pins.map(\.since).min() ?? now
                let evaluated = sets.compactMap(\.evaluated).max() ?? .min
                guard now - since >= PinUseTable.idleSeconds, evaluated > since else { continue }
                found.append(
                    UnseenPin(
                        pinset: name, pin: text, since: since, hasMatched: matched != nil,
                        gateways: pins.count))
            }
        }
        return Array(
            found.sorted { ($0.since, $0.pinset, $0.pin) < ($1.since, $1.pinset, $1.pin) }
                .prefix(Self.maximumPins))
    }
}
