import ArgumentParser
import CLinux
import Clocks
import Gateway
import HTTPCore
import PinfoldEngine
import PinfoldTLS
import Trust

/// `pinfold pin HOST[:PORT]|FILE…`.
struct PinShow: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show the certificates of servers and files with their pins.",
        discussion: """
            Prints each certificate with its pin in every format, and a configuration fragment to \
            paste. Connects to servers as the gateway does, but prints their certificates even if \
            they are not trusted. An argument that looks like a path or ends in .pem, .cer, .crt, \
            .der or .key is a file. Exits with 1 if a server or file has no certificate to show.
            """)

    @Argument(
        help: ArgumentHelp(
            "Servers (host, host:port or https URL), and files of certificates or keys (PEM or "
                + "DER).",
            valueName: "host[:port]|file"), completion: .file())
    var subjects: [String]

    @Option(
        help: ArgumentHelp(
            "Trust these anchors when verifying servers: `system`, or a file of certificates (PEM "
                + "or DER); repeatable.",
            valueName: "roots"), completion: .file())
    var roots: [String] = ["system"]

    @Option(help: ArgumentHelp("The time limit for each server.", valueName: "seconds"))
    var timeout = 10

    @Flag(help: "Print one JSON object per line instead of text.")
    var json = false

    func validate() throws {
        guard !subjects.isEmpty else { throw ValidationError("expected a server or a file") }
        guard (1...300).contains(timeout) else {
            throw ValidationError("--timeout must be from 1 to 300 seconds")
        }
    }

    func run() throws {
        let anchors = try loadRoots()
        var hasFailed = false
        for (index, subject) in subjects.enumerated() {
            do {
                let report = try self.report(on: subject, anchors)
                if json {
                    writeToStandardOutput(report.json + "\n")
                } else {
                    if index > 0 { writeToStandardOutput("\n") }
                    writeToStandardOutput(report.text(now: Clock.wallSeconds()))
                }
            } catch {
                writeError("\(error)")
                hasFailed = true
            }
        }
        if hasFailed { throw ExitCode(1) }
    }

    private func loadRoots() throws -> TrustRoots {
        var sources: [RootSource] = []
        for root in roots {
            sources.append(
                root == "system"
                    ? .system : .file(name: root, contents: try CommandFiles.read(root)))
        }
        do {
            return try TrustRoots(sources)
        } catch {
            throw CommandError("\(error)")
        }
    }

    private func report(on subject: String, _ anchors: TrustRoots) throws -> ChainReport {
        if access(subject, F_OK) == 0 || Self.isFileName(subject) {
            return try report(onFile: subject)
        }
        guard let peer = PeerAddress(subject) else {
            throw CommandError(
                "\(subject): neither an existing file nor a server; expected host, "
                    + "host:port, an https URL or a file")
        }
        return try report(on: peer, anchors)
    }

    /// Whether a text that names no existing file is meant as one: a path, or a name with an ending
    /// of certificate and key files, none of which is a top-level domain. With a port, such a name
    /// is a server.
    private static func isFileName(_ text: String) -> Bool {
        if text.hasPrefix("/") || text.hasPrefix(".") { return true }
        if text.contains("/") { return !text.contains("://") }
        return [".pem", ".cer", ".crt", ".der", ".key"].contains {
            text.lowercasedASCII.hasSuffix($0)
        }
    }

    private func report(onFile path: String) throws -> ChainReport {
        let content = try CommandFiles.read(path)
        do {
            let items = try Pin.decode(file: content).compactMap { pin -> PinnedItem? in
                switch pin {
                case .certificate(let der): try PinnedItem(certificate: der)
                case .publicKey(let der): try PinnedItem(publicKey: der)
                case .keyDigest, .certificateFingerprint: nil
                }
            }
            return ChainReport(source: path, name: "pinned", items: items)
        } catch let error as PinError {
            throw CommandError("\(path): \(error.problem)")
        } catch let error as CertificateError {
            throw CommandError("\(path): \(error)")
        }
    }

    private func report(on peer: PeerAddress, _ anchors: TrustRoots) throws -> ChainReport {
        let shown = try ServerProbe(roots: anchors, milliseconds: Int64(timeout) * 1000)
            .look(at: peer.host, port: peer.port)
        var version = ""
        if let agreed = shown.version { version = ", TLS \(agreed.text)" }
        return ChainReport(
            source: "\(peer)", name: peer.host.contains(":") ? "pinned" : peer.host,
            host: peer.host, roots: rootsToPaste,
            items: try PinnedItem.chain(shown.certificates, anchors),
            connection: "connected to \(shown.endpoint)\(version)",
            verdict: Self.verdict(shown.failure))
    }

    /// The trust anchors with absolute paths, valid in any configuration file.
    private var rootsToPaste: [String] {
        guard roots != ["system"] else { return [] }
        let folder = ConfigurationEnvironment.ofProcess().workingFolder
        return roots.map { root in
            root == "system" || root.hasPrefix("/") ? root : "\(folder)/\(root)"
        }
    }

    /// The verdict, worded as in the gateway's replies and log.
    static func verdict(_ failure: TLSError?) -> ChainReport.Verdict {
        guard let failure else { return .trusted }
        let fault = ExchangeError.tlsFailed(failure)
        return .refused(token: fault.reason.token, detail: "\(failure)")
    }
}
