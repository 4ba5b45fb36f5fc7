import ArgumentParser
import CLinux
import Gateway
import HTTPCore
import Trust

/// `pinfold pin import`.
struct PinImport: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Turn other programs' pins into entries of hosts and pinsets.",
        discussion: """
            Reads a folder of .cer files (AFNetworking), an Info.plist with TSKConfiguration \
            (TrustKit, XML or binary), Android's network security configuration, calls of OkHttp's \
            CertificatePinner, or curl's --pinnedpubkey (a file of command lines, or the string \
            itself), and prints a part of a configuration. What is not carried over is a comment \
            there.
            """)

    /// The forms that are read.
    enum Format: String, CaseIterable, ExpressibleByArgument {
        case auto, trustkit, android, okhttp, curl, cer
    }

    @Argument(
        help: ArgumentHelp("Files and folders, or a string of curl's.", valueName: "file|folder"))
    var inputs: [String]

    @Option(help: "auto, trustkit, android, okhttp, curl or cer.")
    var format = Format.auto

    @Option(
        help: ArgumentHelp(
            "Whom certificates, and strings without a URL, are for: a host pattern; repeatable.",
            valueName: "pattern"))
    var host: [String] = []

    @Flag(help: "Compare imported certificates as a whole, not their keys.")
    var certificates = false

    func run() throws {
        var found: [HostPins] = []
        for input in inputs {
            do {
                found += try read(input)
            } catch let error as PinFormatError {
                throw Failure("\(input): \(error)")
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

    /// Certificates, which say nothing of hosts.
    private func read(_ files: [String]) throws -> [HostPins] {
        guard !host.isEmpty else {
            throw PinFormatError(
                "", "certificates do not say whom they are for", expected: "--host")
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

    /// What a file is, by what is in it.
    static func format(of content: [UInt8]) -> Format {
        if content.starts(with: "bplist".utf8) { return .trustkit }
        let text = String(decoding: content.prefix(1 << 20), as: UTF8.self)
        if text.contains("<network-security-config") { return .android }
        if text.contains("<plist") { return .trustkit }
        if text.contains("-----BEGIN") { return .cer }
        if text.contains("pinnedpubkey") || text.contains("sha256//") { return .curl }
        return text.contains("sha256/") ? .okhttp : .cer
    }

    /// The paths of a folder's certificates, in order; nil: it is no folder.
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
            throw PinFormatError("", "the folder has no certificates", expected: "files *.cer")
        }
        return names.sorted().map { folder.hasSuffix("/") ? folder + $0 : "\(folder)/\($0)" }
    }
}

/// `pinfold pin export`.
struct PinExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write a configuration's pins in another program's form.",
        discussion: """
            Prints what TrustKit, Android, OkHttp or curl takes, or with --format cer writes each \
            pinned certificate to a file in --output. What cannot be said there is a warning if \
            the result is stricter, else an error.
            """)

    @Option(help: ArgumentHelp("The configuration file.", valueName: "file"))
    var config: String

    @Option(help: ArgumentHelp("Only this pinset.", valueName: "name"))
    var pinset: String?

    @Option(help: "trustkit, android, okhttp, curl or cer.")
    var format: ExportFormat

    @Option(
        help: ArgumentHelp(
            "With --format cer: the folder for the files; none that exists is written over.",
            valueName: "folder"))
    var output: String?

    func validate() throws {
        guard (format == .cer) == (output != nil) else {
            throw ValidationError("--format cer needs --output, and no other format takes it")
        }
    }

    func run() throws {
        let source = ConfigurationSource(file: config, overlay: CommandLineOverlay())
        let snapshot: LoadedConfiguration
        do {
            snapshot = try source.load()
        } catch {
            writeToStandardError(error.description + "\n")
            throw ExitCode(1)
        }
        do {
            if let output {
                let files = try PinExport.certificates(snapshot.snapshot, pinset: pinset)
                return try write(files, to: output)
            }
            let export = try PinExport(snapshot.snapshot, pinset: pinset, for: format)
            for warning in export.warnings { writeToStandardError("warning: \(warning)\n") }
            writeToStandardOutput(export.text(format))
        } catch let error as PinFormatError {
            throw Failure("\(config): \(error)")
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
            throw Failure(error.description)
        }
    }
}

extension ExportFormat: ExpressibleByArgument {}
