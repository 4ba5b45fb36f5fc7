import ArgumentParser
import CLinux
import Gateway
import HTTPCore
import Trust

/// `pinfold pin import`.
struct PinImport: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Convert other programs' pins to entries of hosts and pinsets.",
        discussion: """
            Reads a directory of .cer files (AFNetworking), an Info.plist with TSKConfiguration \
            (TrustKit, XML or binary), Android's network security configuration, calls to OkHttp's \
            CertificatePinner, or curl's --pinnedpubkey (a file of command lines, or the string \
            itself). Prints a configuration fragment, with comments about the settings that were \
            not converted. Exits with 1 if an input cannot be read or converted.
            """)

    /// The supported formats.
    enum Format: String, CaseIterable, ExpressibleByArgument {
        case auto, trustkit, android, okhttp, curl, cer
    }

    @Argument(
        help: ArgumentHelp("Files, directories or curl pin strings.", valueName: "file|directory"),
        completion: .file())
    var inputs: [String]

    @Option(help: "The format of the input.")
    var format = Format.auto

    @Option(
        help: ArgumentHelp(
            "The host pattern for certificates, and for curl pins without a URL; repeatable.",
            valueName: "pattern"))
    var host: [String] = []

    @Flag(help: "Pin imported certificates as a whole instead of their keys.")
    var certificates = false

    func run() throws {
        var found: [HostPins] = []
        for input in inputs {
            do {
                found += try read(input)
            } catch let error as PinFormatError {
                throw CommandError("\(input): \(error)")
            }
        }
        writeToStandardOutput(found.inOrder.configuration)
    }

    private func read(_ input: String) throws -> [HostPins] {
        if input.hasPrefix("sha256/") {
            return try CurlFormat.read(Array(input.utf8), hosts: host)
        }
        if let files = try Self.certificateFiles(inFolder: input) { return try read(files) }
        let content = try CommandFiles.read(input)
        switch format == .auto ? Self.format(of: content) : format {
        case .trustkit: return try TrustKitFormat.read(content)
        case .android: return try AndroidFormat.read(content)
        case .okhttp: return try OkHttpFormat.read(content)
        case .curl: return try CurlFormat.read(content, hosts: host)
        case .cer, .auto: return try read([input])
        }
    }

    /// Reads certificates, whose hosts are those of `--host`.
    private func read(_ files: [String]) throws -> [HostPins] {
        guard !host.isEmpty else {
            throw PinFormatError(
                "", "certificates need a host pattern", expected: "--host")
        }
        for file in files {
            do {
                _ = try Pin.decodeCertificates(file: try CommandFiles.read(file))
            } catch let error as PinError {
                throw PinFormatError(file, error.problem, expected: "a certificate")
            }
        }
        var pins = HostPins(patterns: try host.map { try HostPins.pattern($0) }, pins: files)
        if certificates { pins.mode = .certificate }
        return [pins]
    }

    /// Detects the format of a file from its content.
    static func format(of content: [UInt8]) -> Format {
        if content.starts(with: "bplist".utf8) { return .trustkit }
        let text = String(decoding: content.prefix(1 << 20), as: UTF8.self)
        if text.contains("<network-security-config") { return .android }
        if text.contains("<plist") { return .trustkit }
        if text.contains("-----BEGIN") { return .cer }
        if text.contains("pinnedpubkey") || text.contains("sha256//") { return .curl }
        return text.contains("sha256/") ? .okhttp : .cer
    }

    /// The sorted paths of the certificates in a folder, or `nil` if it is not a folder.
    private static func certificateFiles(inFolder folder: String) throws -> [String]? {
        guard let stream = opendir(folder) else { return nil }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            let isCertificate = [".cer", ".crt", ".der", ".pem"].contains {
                name.lowercasedASCII.hasSuffix($0)
            }
            if isCertificate, !name.hasPrefix(".") { names.append(name) }
        }
        guard !names.isEmpty else {
            throw PinFormatError("", "the directory has no certificates", expected: "*.cer files")
        }
        return names.sorted().map { folder.hasSuffix("/") ? folder + $0 : "\(folder)/\($0)" }
    }
}

/// `pinfold pin export`.
struct PinExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Convert a configuration's pins to another program's format.",
        discussion: """
            Prints the pins in the format of TrustKit, Android, OkHttp or curl, or with --format \
            cer writes each pinned certificate to a file in the --output directory. If the format \
            does not support a setting, prints a warning where the result is stricter, and \
            otherwise exits with 1.
            """)

    @Option(help: ArgumentHelp("The configuration file.", valueName: "file"), completion: .file())
    var config: String

    @Option(help: ArgumentHelp("Export only this pinset.", valueName: "name"))
    var pinset: String?

    @Option(help: "The format of the output.")
    var format: ExportFormat

    @Option(
        help: ArgumentHelp(
            "With --format cer: the directory for the files. Existing files are not overwritten.",
            valueName: "directory"), completion: .directory)
    var output: String?

    func validate() throws {
        guard (format == .cer) == (output != nil) else {
            throw ValidationError("--output is required with --format cer, and only works with it")
        }
    }

    func run() throws {
        let source = ConfigurationSource(file: config, overlay: CommandLineOverlay())
        let snapshot: LoadedConfiguration
        do {
            snapshot = try source.load()
        } catch {
            error.write()
            throw ExitCode(1)
        }
        do {
            if let output {
                let files = try PinExport.certificates(snapshot.snapshot, pinset: pinset)
                return try write(files, to: output)
            }
            let export = try PinExport(snapshot.snapshot, pinset: pinset, for: format)
            for warning in export.warnings { writeWarning(warning) }
            writeToStandardOutput(export.text(format))
        } catch let error as PinFormatError {
            throw CommandError("\(config): \(error)")
        }
    }

    private func write(_ certificates: [(name: String, der: [UInt8])], to folder: String) throws {
        var files = NewFiles()
        do {
            for (name, der) in certificates {
                let path = folder.hasSuffix("/") ? folder + name : "\(folder)/\(name)"
                try NewFiles.makeFolder(of: path)
                try files.write(der, to: path, mode: NewFiles.open)
            }
        } catch {
            files.remove()
            throw CommandError(error.description)
        }
    }
}

extension ExportFormat: ExpressibleByArgument {}
