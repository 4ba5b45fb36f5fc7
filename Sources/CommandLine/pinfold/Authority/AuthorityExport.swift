import ArgumentParser
import CLinux
import Gateway
import PinfoldTLS

/// `pinfold ca export`.
struct AuthorityExport: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Export the certificate that clients must trust, never the key.")

    /// The formats of a certificate file.
    enum Format: String, CaseIterable, ExpressibleByArgument {
        case pem, der
    }

    @OptionGroup var certificateFile: AuthorityCertificatePath

    @Option(help: "The format of the output: pem, or der, which some devices need.")
    var format = Format.pem

    @Option(
        help: ArgumentHelp(
            "Write to this file, which must not exist yet, instead of standard output.",
            valueName: "file"), completion: .file())
    var output: String?

    func run() throws {
        let bytes = try exported()
        guard let output else { return writeToStandardOutput(bytes) }
        var files = NewFiles()
        do {
            try files.write(bytes, to: output, mode: NewFiles.open)
        } catch {
            throw CommandError(error.description)
        }
    }

    private func exported() throws -> [UInt8] {
        let anchor: (pem: [UInt8], der: [UInt8])
        do {
            anchor = try CertificateAuthority.readAnchor(certificatePath: certificateFile.path)
        } catch {
            throw CommandError(error.description)
        }
        return format == .pem ? anchor.pem : anchor.der
    }
}
