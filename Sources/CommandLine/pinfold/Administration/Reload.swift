import ArgumentParser
import Documents

/// `pinfold reload`: makes a running gateway read its configuration again.
struct Reload: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Make the running gateway read its configuration again.",
        discussion: """
            Does what SIGHUP does, and waits until every worker uses the new configuration. Prints \
            what has changed, and what differs in effect, and warnings on standard error. If the \
            configuration is refused, prints one line for each error to standard error and exits \
            with 1: the previous one remains in effect. Exits with 2 if the gateway cannot be \
            asked or does not answer. With --dry-run, the gateway reads its configuration and says \
            what would differ, but goes on with the one in effect.
            """)

    @Flag(help: "Only say what would differ.")
    var dryRun = false

    @OptionGroup var options: AdministrationOptions

    func run() throws {
        let answer: RunningGateway.Answer
        do {
            let gateway = try options.gateway()
            answer =
                try dryRun
                ? gateway.ask(.get, "/api/v1/reload/differences")
                : gateway.ask(.post, "/api/v1/reload")
        } catch {
            writeError("\(error)")
            throw ExitCode(2)
        }
        let value = answer.value
        switch answer.status {
        case 200 where value?["generation"] != nil:
            for warning in value?.texts("warnings") ?? [] { writeWarning(warning) }
            for section in value?.words("needRestart") ?? [] {
                writeWarning("\(section): the change takes effect only after a restart")
            }
            writeToStandardOutput(dryRun ? Self.trial(of: value) : Self.summary(of: value))
        case 422:
            for error in value?.texts("errors") ?? [] { writeError(error) }
            throw ExitCode(1)
        default:
            writeError(answer.problem)
            throw ExitCode(2)
        }
    }

    private static func summary(of value: DocumentValue?) -> String {
        let changed = value?.words("changed") ?? []
        var text = "configuration reloaded: "
        text += changed.isEmpty ? "nothing has changed" : changed.joined(separator: ", ")
        text += "\n"
        for name in value?.words("removed") ?? [] { text += "removed from \(name)\n" }
        for difference in value?.words("differences") ?? [] { text += difference + "\n" }
        return text
    }

    private static func trial(of value: DocumentValue?) -> String {
        let differences = value?.words("differences") ?? []
        return differences.isEmpty
            ? "nothing would differ in effect\n"
            : "a reload would change:\n" + differences.map { $0 + "\n" }.joined()
    }
}

extension RunningGateway.Answer {
    /// What an answer that is an error says.
    var problem: String {
        guard case .string(let detail)? = value?["detail"] else {
            return "the answer has status \(status), and is none of a gateway's API"
        }
        return detail
    }

    /// What kind of error it is (RFC 9457), without the beginning that all of them have; `nil` if
    /// it is none.
    var problemKind: String? {
        let prefix = "urn:pinfold:problem:"
        guard case .string(let type)? = value?["type"], type.hasPrefix(prefix) else { return nil }
        return String(type.dropFirst(prefix.count))
    }
}

extension DocumentValue {
    /// The values of a member that is a list.
    func list(_ key: String) -> [DocumentValue] {
        if case .array(let values)? = self[key] { values } else { [] }
    }

    /// The texts of a member that is a list of them.
    func words(_ key: String) -> [String] { list(key).compactMap(\.text) }

    /// The `text` of each object in a member that is a list.
    func texts(_ key: String) -> [String] { list(key).compactMap { $0["text"]?.text } }

    /// A string's characters; `nil` for anything else.
    var text: String? { if case .string(let text) = self { text } else { nil } }

    /// A number; 0 for anything else.
    var count: Int64 {
        if case .number(let number) = self { Int64(number.text) ?? 0 } else { 0 }
    }
}
