import ArgumentParser
import CLinux
import Gateway
import PinfoldTLS

/// `pinfold ca export`.
struct AuthorityExport: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write the certificate that clients are to trust; never the key.")

    /// The forms of a certificate's file.
    enum Format: String, CaseIterable, ExpressibleByArgument {
        case pem, der
    }

    @Option(help: ArgumentHelp("The file of the authority's certificate.", valueName: "file"))
    var certificate = ConfigurationEnvironment.ofProcess().defaultAuthority.certificate

    @Option(help: "pem, or der, which some devices ask for.")
    var format = Format.pem

    @Option(
        help: ArgumentHelp(
            "Where to, never in the place of another file; default: standard output.",
            valueName: "file"))
    var output: String?

    func run() throws {
        let bytes = try exported()
        guard let output else { return writeToStandardOutput(bytes) }
        var files = NewFiles()
        do {
            try files.write(bytes, to: output, mode: NewFiles.open)
        } catch {
            throw Failure(error.description)
        }
    }

    private func exported() throws -> [UInt8] {
        let anchor: (pem: [UInt8], der: [UInt8])
        do {
            anchor = try CertificateAuthority.readAnchor(certificatePath: certificate)
        } catch {
            throw Failure(error.description)
        }
        return format == .pem ? anchor.pem : anchor.der
    }
}
