import CLinux
import Clocks
import Documents

/// A policy that the engine has, as the gateway says.
struct PublishedText {
    let serial: Int64
    let hash: String
    let percent: Int

    init(_ answer: DocumentValue, percent: Int) {
        serial = answer["serial"]?.count ?? 0
        hash = answer["hash"]?.text ?? ""
        self.percent = percent
    }

    init(serial: Int64, hash: String, percent: Int) {
        (self.serial, self.hash, self.percent) = (serial, hash, percent)
    }

    var first: String {
        let share = percent == 100 ? "all gateways" : "\(percent) % of the gateways"
        return "serial \(serial) (\(FleetStatusText.short(hash))) is published for \(share)\n"
    }
}

/// Who has taken a policy that was published.
struct FleetRollout {
    /// What has become of it on one gateway.
    enum Outcome: Equatable {
        case taken
        case refused(String)
        /// It is not among those that are meant.
        case notMeant(from: Int)
        case waiting
        /// It does not say that it is there.
        case away
        /// It says nothing of a policy.
        case silent(String)

        var text: String {
            switch self {
            case .taken: "taken"
            case .refused(let cause): "refused: \(cause)"
            case .notMeant(let share): "keeps its policy (takes one from \(share) % on)"
            case .waiting: "not yet"
            case .away: "away"
            case .silent(let problem): "unknown: \(problem)"
            }
        }

        /// Whether nothing else is to be expected.
        var isFinal: Bool {
            switch self {
            case .taken, .refused, .notMeant, .away: true
            case .waiting, .silent: false
            }
        }
    }

    let published: PublishedText
    /// Asks the gateway for the fleet.
    private let ask: () throws -> DocumentValue
    private(set) var gateways: [(name: String, share: Int, outcome: Outcome)] = []

    init(published: PublishedText, gateway: RunningGateway) {
        self.init(published: published) { try gateway.value(.get, "/api/v1/fleet") }
    }

    init(published: PublishedText, ask: @escaping () throws -> DocumentValue) {
        (self.published, self.ask) = (published, ask)
    }

    /// Asks until every gateway has taken or refused it, or until the time is over.
    func follow(milliseconds: Int64) throws -> FleetRollout {
        var followed = self
        let end = Clock.monotonicMilliseconds() + milliseconds
        while true {
            followed.read(try ask())
            if followed.gateways.allSatisfy(\.outcome.isFinal) { return followed }
            if Clock.monotonicMilliseconds() >= end { return followed }
            usleep(250_000)
        }
    }

    /// Reads what the gateways say.
    mutating func read(_ value: DocumentValue) {
        gateways = value.list("gateways").map { gateway in
            (
                gateway["name"]?.text ?? "?", Int(clamping: gateway["share"]?.count ?? 100),
                outcome(of: gateway)
            )
        }
    }

    private func outcome(of gateway: DocumentValue) -> Outcome {
        if gateway["away"] == .boolean(true) { return .away }
        if let problem = gateway["problem"]?.text { return .silent(problem) }
        guard let policy = gateway["policy"] else {
            return .silent("it has no policy by way of the engine")
        }
        if policy["serial"]?.count == published.serial, policy["hash"]?.text == published.hash {
            return .taken
        }
        if let offered = policy["offered"], offered["serial"]?.count == published.serial,
            offered["hash"]?.text == published.hash, let refusal = offered["refusal"]?.text
        {
            return .refused(refusal)
        }
        let share = Int(clamping: gateway["share"]?.count ?? 100)
        // One that has none takes what there is.
        if share > published.percent, policy["serial"] != nil { return .notMeant(from: share) }
        return .waiting
    }

    /// Whether all that are meant and are there have taken it.
    var isComplete: Bool {
        gateways.allSatisfy { gateway in
            switch gateway.outcome {
            case .taken, .notMeant, .away: true
            case .refused, .waiting, .silent: false
            }
        }
    }

    var text: String {
        let width = gateways.map(\.name.count).max() ?? 0
        return gateways.map { gateway in
            let blank = String(repeating: " ", count: width - gateway.name.count)
            return TableText.printable("\(gateway.name)\(blank)  \(gateway.outcome.text)") + "\n"
        }.joined()
    }

    var warnings: [String] {
        let shares = gateways.filter { $0.outcome != .away }.map(\.share)
        guard let least = shares.min(), least > published.percent,
            !gateways.contains(where: { $0.outcome == .taken })
        else { return [] }
        return [
            "no gateway takes a policy that is for \(published.percent) %: the first one does from "
                + "\(least) % on"
        ]
    }
}
