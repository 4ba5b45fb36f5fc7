import ArgumentParser
import Documents

/// `pinfold status`: shows the state of a running gateway.
struct Status: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show the state of the running gateway.",
        discussion: """
            Exits with 0 if the gateway accepts new work, with 1 if it is starting or shutting \
            down, and with 2 if it cannot be asked or does not answer: usable as a health check.
            """)

    @OptionGroup var options: AdministrationOptions

    @Flag(help: "Print the answer of /api/v1/status as it is, in JSON.")
    var json = false

    func run() throws {
        let gateway: RunningGateway
        let answer: RunningGateway.Answer
        do {
            gateway = try options.gateway()
            answer = try gateway.ask(.get, "/api/v1/status")
        } catch {
            writeError("\(error)")
            throw ExitCode(2)
        }
        guard answer.status == 200, let value = answer.value, let state = value["state"]?.text
        else {
            writeError(answer.problem)
            throw ExitCode(2)
        }
        if json {
            writeToStandardOutput(answer.body)
        } else {
            // A gateway that is older, or has no time for a report, has said enough.
            let overview = try? gateway.ask(.get, "/api/v1/overview")
            let attention = overview?.value?.list("attention") ?? []
            writeToStandardOutput(StatusText.text(of: value, attention: attention))
        }
        if state != "ready" { throw ExitCode(1) }
    }
}

/// The state of a gateway for people.
enum StatusText {
    /// - Parameter attention: what needs attention, the worst first.
    static func text(of value: DocumentValue, attention: [DocumentValue] = []) -> String {
        var lines = [first(value)] + attention.map { self.attention($0) }
        lines += configuration(value["configuration"] ?? .null)
        if let policy = value["policy"] {
            lines.append(row("policy", Self.policy(policy)[0]))
        }
        if let reload = value["lastReload"] { lines += self.reload(reload) }
        for listener in value.list("listeners") { lines.append(self.listener(listener)) }
        for server in value.list("servers") { lines.append(self.server(server)) }
        if let load = value["load"] { lines.append(row("in progress", self.load(load))) }
        for tier in ["memory", "disk"] {
            if let value = value["cache"]?[tier] { lines.append(self.tier(tier, value)) }
        }
        if let shared = value["cache"]?["shared"] { lines.append(self.shared(shared)) }
        if let draining = value["draining"] {
            lines.append(
                row(
                    "draining",
                    "since \(word(draining, "since")), until \(word(draining, "ends")) at the "
                        + "latest"))
        }
        return lines.map { $0 + "\n" }.joined()
    }

    private static func first(_ value: DocumentValue) -> String {
        "\(word(value, "explanation")) (Pinfold \(word(value, "version")), revision "
            + "\(word(value, "revision")), process \(number(value, "pid")), running for "
            + "\(time(number(value, "uptimeSeconds"))))"
    }

    private static func attention(_ value: DocumentValue) -> String {
        let subject = value["host"]?.text.map { "\($0): " } ?? ""
        return row("attention", "\(word(value, "level")): \(subject)\(word(value, "text"))")
    }

    private static func configuration(_ value: DocumentValue) -> [String] {
        let file = value["file"]?.text ?? "built-in defaults"
        let hosts = count(number(value, "hosts"), "host entry", "host entries")
        let pinsets = count(number(value, "pinsets"), "pinset", "pinsets")
        var lines = [
            row(
                "configuration",
                "\(file), number \(number(value, "generation")), loaded "
                    + "\(word(value, "loaded")): \(hosts), \(pinsets)")
        ]
        lines += value.texts("warnings").map { row("warning", $0) }
        lines += value.words("unusableFiles").map { row("unusable file", $0) }
        lines += value.words("needRestart").map { row("needs restart", $0) }
        return lines
    }

    /// The policy from elsewhere: what it is, and then what is wrong and what was refused.
    static func policy(_ value: DocumentValue) -> [String] {
        let url = value["url"]?.text ?? "the fleet's engine"
        var line = "none, from \(url)"
        if let serial = value["serial"]?.count {
            let confirmed = value["confirmed"]?.text.map { ", confirmed \($0)" } ?? ""
            let state = word(value, "state") == "expired" ? "expired" : "expires"
            line =
                "serial \(serial) from \(url), \(state) \(word(value, "expires"))\(confirmed): "
                + [
                    count(number(value, "hosts"), "host entry", "host entries"),
                    count(number(value, "pinsets"), "pinset", "pinsets"),
                    count(number(value, "rules"), "rule", "rules"),
                ].joined(separator: ", ")
        }
        var lines = [line]
        lines += value.list("keys").compactMap { $0.text.map { "signed by \($0)" } }
        lines += value.list("alarms").map { "\(word($0, "alarm")): \(word($0, "text"))" }
        if let refused = value["lastRefused"] {
            lines.append("last refused \(word(refused, "time")): \(word(refused, "text"))")
        }
        return lines
    }

    private static func reload(_ value: DocumentValue) -> [String] {
        [row("last reload", "\(word(value, "result")) \(word(value, "time"))")]
            + value.texts("errors").map { row("error", $0) }
    }

    private static func listener(_ value: DocumentValue) -> String {
        let isSecure = value["tls"] == .boolean(true)
        let accepts = value["accepting"] == .boolean(true)
        return row(
            "listener",
            "\(word(value, "name")) (\(word(value, "kind"))) on \(word(value, "address"))"
                + (isSecure ? " with TLS" : "")
                + (accepts ? "" : ": accepts no connections"))
    }

    private static func server(_ value: DocumentValue) -> String {
        let state = word(value, "state")
        let cause = value["cause"]?.text.map { ": \($0)" } ?? ""
        return row(
            "server",
            "\(word(value, "url")) of \(word(value, "listener")) is \(state)"
                + (value["backup"] == .boolean(true) ? ", a backup" : "")
                + ", \(count(number(value, "requests"), "request", "requests"))" + cause)
    }

    private static func load(_ value: DocumentValue) -> String {
        [
            count(number(value, "connections"), "client connection", "client connections"),
            count(number(value, "requests"), "request", "requests"),
            count(number(value, "tunnels"), "tunnel", "tunnels"),
            count(number(value, "serverConnections"), "server connection", "server connections"),
        ].joined(separator: ", ")
    }

    private static func tier(_ name: String, _ value: DocumentValue) -> String {
        let state = word(value, "state")
        guard state == "on" else { return row("cache", "\(name) is \(state)") }
        let place = value["path"]?.text.map { " in \($0)" } ?? ""
        return row(
            "cache",
            "\(name): \(ProgressText.size(number(value, "bytes"))) of "
                + "\(ProgressText.size(number(value, "limitBytes"))), "
                + count(number(value, "entries"), "response", "responses") + place)
    }

    private static func shared(_ value: DocumentValue) -> String {
        let (state, members) = (word(value, "state"), number(value, "members"))
        let place = "at \(word(value, "engine"))"
        guard state == "on" else {
            let reason = value["reason"]?.text.map { " (\($0))" } ?? ""
            return row("cache", "shared is \(state)\(reason), \(place)")
        }
        return row(
            "cache",
            "shared: by \(count(members, "gateway", "gateways")), this one being "
                + "\(word(value, "name")), \(place)")
    }

    // MARK: Words

    private static let width = 15

    private static func row(_ name: String, _ text: String) -> String {
        name + String(repeating: " ", count: max(1, width - name.utf8.count)) + text
    }

    private static func word(_ value: DocumentValue, _ key: String) -> String {
        value[key]?.text ?? "?"
    }

    private static func number(_ value: DocumentValue, _ key: String) -> Int64 {
        value[key]?.count ?? 0
    }

    private static func count(_ number: Int64, _ one: String, _ more: String) -> String {
        "\(number) \(number == 1 ? one : more)"
    }

    /// A duration in its two largest units: `3 d 4 h`.
    static func time(_ seconds: Int64) -> String {
        let units: [(Int64, String)] = [
            (seconds / 86_400, "d"), (seconds / 3_600 % 24, "h"), (seconds / 60 % 60, "min"),
            (seconds % 60, "s"),
        ]
        let shown = units.drop { $0.0 == 0 }.prefix(2)
        return shown.isEmpty ? "0 s" : shown.map { "\($0.0) \($0.1)" }.joined(separator: " ")
    }
}
