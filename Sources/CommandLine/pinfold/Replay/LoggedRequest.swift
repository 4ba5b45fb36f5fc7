import HTTPCore
import PinfoldConfiguration
import PinfoldEngine

/// What a line of an access log says of a request.
struct LoggedRequest {
    var request: PastRequest
    /// What became of it.
    var outcome: Standing
    /// The time as it is written.
    var time: String
    /// The number of the exchange.
    var id: String?
}

/// What a line is, as far as it can be judged.
enum LineReading {
    case request(LoggedRequest)
    /// It lacks these fields.
    case lacks([LogField])
    /// The configuration decides nothing about it, for this reason.
    case undecided(String)
    /// It is no line of an access log.
    case unreadable
}

/// Makes requests of lines.
struct LogInterpreter {
    /// The only listener that takes requests for proxies, and the only one that takes others; `nil`
    /// if there are several.
    private let forward: String?
    private let reverse: String?
    private let readsOutcomes: Bool
    private var authorities = AuthorityTable()
    private var clock: (text: [UInt8], seconds: Int64) = ([], 0)

    /// - Parameter configurations: those that requests are judged under. Of lines that do not name
    ///   their listener, theirs are the ones that it may be.
    /// - Parameter readsOutcomes: whether it matters what became of the requests.
    init(_ configurations: [ConfigurationSnapshot], readsOutcomes: Bool = true) {
        self.readsOutcomes = readsOutcomes
        var names: Set<String> = []
        let listeners = configurations.flatMap(\.listeners)
            .filter { names.insert($0.name).inserted }
        func only(_ fitting: [ListenerConfiguration]) -> String? {
            fitting.count == 1 ? fitting[0].name : nil
        }
        forward = only(listeners.filter(\.kind.isForward))
        reverse = only(listeners.filter { !$0.kind.isForward })
    }

    mutating func interpret(_ line: LogLine) -> LineReading {
        if line.text(.listener) == AdministrationListener.name {
            return .undecided("a request to the administrative address")
        }
        let reason = line.text(.reason)
        if let reason, let why = ReasonKinds.undecided[reason] { return .undecided(why) }
        if reason != nil, line.text(.host) == "none",
            !ReasonKinds.ofConfiguration.contains(reason ?? "")
        {
            return .undecided("refused before it was known what for: \(reason ?? "")")
        }
        var lacking: [LogField] = []
        for field in Self.required where !line.has(field) { lacking.append(field) }
        guard lacking.isEmpty else { return .lacks(lacking) }
        guard let form = form(of: line) else { return .undecided("its target names no host") }
        let (method, methodName) = Self.method(line.bytes(.method))
        let listener = line.text(.listener) ?? (form.form == .path ? reverse : forward)
        if listener == nil { lacking.append(.listener) }
        let client = Self.client(line.bytes(.client))
        if client == nil, !lacking.contains(.client) { lacking.append(.client) }
        let seconds = seconds(line.bytes(.time))
        if seconds == nil, !lacking.contains(.time) { lacking.append(.time) }
        guard lacking.isEmpty, let listener, let client, let seconds else {
            return .lacks(lacking)
        }
        let request = PastRequest(
            listener: listener, client: client, user: line.text(.user), form: form.form,
            host: form.host, port: form.port, method: method, methodName: methodName,
            target: Array(form.target), seconds: seconds,
            address: line.has(.parent) ? nil : Self.address(line.bytes(.upstream)))
        return .request(
            LoggedRequest(
                request: request,
                outcome: readsOutcomes ? Standing(logged: line, form.form) : Standing(),
                time: line.text(.time) ?? "", id: line.text(.id)))
    }

    /// The fields without which nothing is known of a request.
    private static let required: [LogField] = [.time, .client, .method, .target]

    // MARK: The target

    private typealias Form = (
        form: PastRequest.Form, host: String, port: UInt16, target: ArraySlice<UInt8>
    )

    /// In which form it came, and for what.
    private mutating func form(of line: LogLine) -> Form? {
        let target = line.bytes(.target)
        let isPath = target.first == UInt8(ascii: "/")
        if line.bytes(.method).elementsEqual("CONNECT".utf8) {
            guard !line.has(.tunnel), let named = authorities.authority(target, .https) else {
                return nil
            }
            return (.tunnel, named.host, named.port, [])
        }
        if line.has(.tunnel) {
            guard let named = authorities.authority(line.bytes(.tunnel), .https) else { return nil }
            return (.inTunnel, named.host, named.port, Self.path(of: target))
        }
        if line.has(.authority) {
            guard let named = authorities.authority(line.bytes(.authority), .http) else {
                return nil
            }
            return (.named(isSecure: false), named.host, named.port, Self.path(of: target))
        }
        if isPath { return (.path, "", 0, target) }
        let path = Self.path(of: target)
        guard let named = authorities.authority(target[..<path.startIndex], .own) else {
            return nil
        }
        return (.named(isSecure: named.isSecure), named.host, named.port, path)
    }

    /// The path and query of a target.
    private static func path(of target: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        if target.first == UInt8(ascii: "/") { return target }
        let slash = UInt8(ascii: "/")
        // The first "://".
        let colon = target.indices.dropLast(2).first {
            target[$0] == UInt8(ascii: ":") && target[$0 + 1] == slash && target[$0 + 2] == slash
        }
        guard let colon else { return target[target.endIndex...] }
        return target[(colon + 3)...].drop {
            $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#")
        }
    }

    // MARK: Values

    /// The methods that have a name, each with that.
    private static let methods = Method.allCases.filter { $0 != .other }.map { method in
        (method: method, name: Array("\(method.name)".utf8))
    }

    /// The method of a name, which is case-sensitive (RFC 9110 §9.1), and the name.
    private static func method(_ name: ArraySlice<UInt8>) -> (Method, [UInt8]) {
        for known in methods where name.elementsEqual(known.name) {
            return (known.method, known.name)
        }
        return (.other, Array(name))
    }

    /// A client's address, with or without its port.
    private static func client(_ text: ArraySlice<UInt8>) -> IPAddress? {
        if text.elementsEqual(IPNetwork.unixWord.utf8) { return .unnamed }
        return IPAddress(literal: text.span) ?? address(text)
    }

    /// The address of an address and port.
    private static func address(_ text: ArraySlice<UInt8>) -> IPAddress? {
        guard let colon = text.lastIndex(of: UInt8(ascii: ":")) else { return nil }
        var host = text[..<colon]
        if host.first == UInt8(ascii: "["), host.last == UInt8(ascii: "]") {
            host = host.dropFirst().dropLast()
        }
        return IPAddress(literal: host.span)
    }

    private mutating func seconds(_ text: ArraySlice<UInt8>) -> Int64? {
        // Lines of the same second follow each other.
        let prefix = text.prefix(19)
        if text.last == UInt8(ascii: "Z"), prefix.elementsEqual(clock.text) {
            return clock.seconds
        }
        guard let seconds = CivilDate.secondsSince1970(rfc3339: text) else { return nil }
        if text.last == UInt8(ascii: "Z") { clock = (Array(prefix), seconds) }
        return seconds
    }
}

/// The name under which requests to the administrative address are logged.
enum AdministrationListener {
    static let name = "admin"
}

/// Which reasons of lines a configuration decides.
enum ReasonKinds {
    /// Reasons that follow from the request, the client, the user, the address and the
    /// configuration.
    static let ofConfiguration: Set<String> = {
        let access: [AccessReason] = [
            .notAProxyRequest, .clientNotAllowed, .connectOnReverseRoute, .connectPortRefused,
            .hostNotListed, .deniedByRule, .deniedByDefault, .ambiguousPath, .tunnelRefused,
            .interceptionImpossible, .clearTextRefused, .pinnedPortRefused, .destinationRefused,
            .ownListenerRefused,
        ]
        return Set(
            access.map { Reason.access($0).token }
                + [Reason.authentication(.required), .authentication(.certificateUnknown)].map(
                    \.token)
                + [ofPins, Reason.trust(.pinsetExpired).token])
    }()

    /// No pin matched: decided by the server's keys, too, which the log does not have.
    static let ofPins = Reason.trust(.noPinMatches).token

    /// Reasons of refusals that come before the configuration is asked, and why.
    static let undecided: [String: String] = {
        var result: [String: String] = [:]
        for reason in Reason.allCases {
            let token = reason.token
            switch reason.entry.section {
            case .request: result[token] = "the request could not be read: \(token)"
            case .purging: result[token] = "a request to purge: \(token)"
            case .authentication where !ofConfiguration.contains(token):
                result[token] = "the credentials, which are not in the log: \(token)"
            default: break
            }
        }
        for reason: AccessReason in [
            .misdirected, .clientSubjectNotAllowed, .requestForProxy, .loopDetected,
        ] {
            let token = Reason.access(reason).token
            result[token] = "decided by what is not in the log: \(token)"
        }
        return result
    }()
}
