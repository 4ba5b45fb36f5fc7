import ArgumentParser
import Gateway
import HTTPCore
import PinfoldConfiguration

/// `pinfold diff OLD NEW`: says what differs in effect between two configurations.
struct Diff: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Say what differs in effect between two configurations.",
        discussion: """
            Both are read and checked as at a start. Hosts are compared by the entries that apply \
            to them. A default that is written out, another way of writing the same, and an order \
            that makes no difference are no differences. Relative paths are relative to the file's \
            own folder: keep both files in the same one.

            Exits with 0 if nothing differs, with 1 if something does, and with 2 if one of the \
            files is refused.
            """)

    @Argument(
        help: ArgumentHelp("The configuration before.", valueName: "old"), completion: .file())
    var old: String

    @Argument(
        help: ArgumentHelp("The configuration after.", valueName: "new"), completion: .file())
    var new: String

    @Option(
        help: ArgumentHelp(
            "A signed policy that is read with the configuration after.", valueName: "file"),
        completion: .file())
    var policy: String?

    @Option(
        help: ArgumentHelp(
            "A signed policy that is read with the configuration before.", valueName: "file"),
        completion: .file())
    var oldPolicy: String?

    @Option(help: "The format of the output: text or json.")
    var format = OutputFormat.text

    func run() throws {
        let (before, after) = (try load(old, oldPolicy), try load(new, policy))
        let differences = ConfigurationDifference.all(from: before, to: after)
        let needRestart = after.keysThatNeedRestart(after: before)
        switch format {
        case .text: writeToStandardOutput(Self.text(differences, needRestart))
        case .json: writeToStandardOutput(Self.json(differences, needRestart) + "\n")
        }
        if !differences.isEmpty { throw ExitCode(1) }
    }

    private func load(_ file: String, _ policy: String?) throws -> ConfigurationSnapshot {
        var source = ConfigurationSource(file: file, overlay: CommandLineOverlay())
        source.policy = policy
        do throws(ConfigurationErrors) {
            return try source.load().snapshot
        } catch {
            error.write()
            throw ExitCode(2)
        }
    }

    private static func text(
        _ differences: [ConfigurationDifference], _ needRestart: [String]
    ) -> String {
        var lines = differences.flatMap(\.lines)
        if lines.isEmpty { lines = ["nothing differs in effect"] }
        if !needRestart.isEmpty {
            lines.append("only after a restart: \(needRestart.joined(separator: ", "))")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func json(
        _ differences: [ConfigurationDifference], _ needRestart: [String]
    ) -> String {
        var object = JSONObject()
        object.add(
            "differences",
            differences.map { difference in
                var object = JSONObject()
                object.add("section", difference.section)
                object.add("subjects", difference.subjects)
                object.add("kind", difference.kind.rawValue)
                object.add("note", difference.note)
                object.add(
                    "details",
                    difference.details.map { detail in
                        var object = JSONObject()
                        object.add("key", detail.key)
                        object.add("before", detail.before)
                        object.add("after", detail.after)
                        object.add("added", detail.added)
                        object.add("removed", detail.removed)
                        object.add("meaning", detail.meaning)
                        return object
                    })
                object.add("text", difference.text)
                return object
            })
        object.add("needRestart", needRestart)
        return object.text
    }
}
