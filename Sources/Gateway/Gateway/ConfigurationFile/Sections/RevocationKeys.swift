import PinfoldConfiguration
import PinfoldTLS
import Trust

/// `crls` and `ocspStapling` of `tls`.
extension UpstreamTLS {
    static var revocationKeys: [ConfigurationKey<Self>] {
        [
            ConfigurationKey(
                "crls", \.crls,
                reading: { reader, field in
                    field.boundedList(of: "files of CRLs")?.compactMap { reader.crlFile($0) }
                },
                text: { YAMLText.list($0.map(\.path)) }),
            .choice("ocspStapling", \.ocspStapling),
        ]
    }
}

extension SnapshotReader {
    fileprivate func crlFile(_ field: Field) -> CRLFile? {
        guard let path = field.filePath(), let contents = field.contents(ofFile: path) else {
            return nil
        }
        do throws(CRLFileProblem) {
            let (file, warnings) = try CRLFile.read(
                contents, path: path, at: validation.environment.now)
            for warning in warnings { field.warn(warning) }
            return file
        } catch {
            field.fail(error.text, expected: CRLFile.expected)
            return nil
        }
    }

    /// Warns of questions about revocation that no chain is built for.
    func warnOfUnverifiedChains(_ field: Field, _ entry: HostEntry, _ pinsets: [PinsetEntry]) {
        let own = entry.pinsets.map { pinsets[$0].pinset }
        if let pinset = own.first(where: \.anchorsServersUnverified), !entry.tls.crls.isEmpty {
            field.warn(
                "since pinset \(pinset.name) allows invalid certificates, no chain to the roots is "
                    + "verified: a server whose own certificate is pinned must send that of its "
                    + "issuer, whose list tls.crls must have, or is refused; only an issuer that "
                    + "is among the roots need not be sent")
        }
        guard let first = own.first,
            own.allSatisfy({ $0.allowInvalidCertificates && $0.mode != .certificate })
        else { return }
        let why = "since pinset \(first.name) allows invalid certificates, no chain is verified"
        if entry.tls.ocspStapling == .required {
            field.warn("\(why), and tls.ocspStapling: required refuses every server")
        }
        if !entry.tls.crls.isEmpty { field.warn("\(why), and tls.crls is not looked at") }
    }

    /// Warns of lists that no chain, or only chains through an intermediate authority, can meet.
    func warnOfForeignLists(_ field: Field?, _ tls: UpstreamTLS) {
        // What is inherited is told where it is written.
        guard let elements = field?.key("crls")?.elements, elements.count == tls.crls.count,
            let roots = try? LoadedRoots(tls.rootSources)
        else { return }
        for (element, file) in zip(elements, tls.crls) {
            for der in file.lists {
                guard let list = try? RevocationList(der: der) else { continue }
                let (isKnown, hasSigned) = list.issuer(among: roots)
                if !isKnown {
                    element.warn(
                        "the issuer \(list.issuer) is not among the roots: its list counts only "
                            + "for servers that send an authority of that name")
                } else if !hasSigned {
                    element.warn(
                        "the list of \(list.issuer) is not signed by the root of that name: "
                            + "servers below that root are refused")
                }
            }
        }
    }
}

/// Why a file of CRLs cannot be used.
struct CRLFileProblem: Error {
    var text: String
}

extension CRLFile {
    /// What such a file is to hold.
    static let expected = "CRLs in PEM, or one in DER"

    /// The file's lists, and what is probably not meant.
    ///
    /// - Parameter now: seconds since 1970.
    static func read(
        _ contents: [UInt8], path: String, at now: Int64
    ) throws(CRLFileProblem) -> (file: CRLFile, warnings: [String]) {
        let lists: [[UInt8]]
        do throws(ListFileError) {
            lists = try ListFile.decode(contents)
        } catch {
            throw CRLFileProblem(text: "\(quoted(path)) is no file of CRLs: \(error.problem)")
        }
        var warnings: [String] = []
        var digests: [SHA256Digest] = []
        for (index, der) in lists.enumerated() {
            let place = lists.count == 1 ? quoted(path) : "\(quoted(path)), list \(index + 1),"
            let list: RevocationList
            do throws(RevocationList.Problem) {
                list = try RevocationList(der: der)
            } catch {
                throw CRLFileProblem(text: "\(place) holds \(error)")
            }
            guard let content = list.content else {
                throw CRLFileProblem(text: "\(place) cannot be digested: out of memory")
            }
            digests.append(content)
            let whose = "the list of \(list.issuer)"
            if list.ends <= now {
                warnings.append(
                    "\(place) holds \(whose), which is out of date: servers below it are refused; "
                        + "fetch the new one")
            } else if list.ends - now < (list.ends - list.issued) / 10 {
                warnings.append(
                    "\(place) holds \(whose), which is out of date in "
                        + "\(Quantity.text(milliseconds: (list.ends - now) / 60 * 60_000)); "
                        + "fetch the new one")
            }
            if list.issued > now { warnings.append("\(place) holds \(whose), which is of later") }
        }
        return (CRLFile(path: path, lists: lists, contents: digests), warnings)
    }

    /// The same with the lists of a file before it in the place of older ones of their issuer and
    /// scope, with a warning for each: who brings back an old list takes back revocations.
    func keepingNewer(of before: CRLFile) -> (file: CRLFile, warnings: [String]) {
        var file = self
        var warnings: [String] = []
        var present = lists.map { try? RevocationList(der: $0) }
        for (index, der) in before.lists.enumerated() where !lists.contains(der) {
            guard let old = try? RevocationList(der: der) else { continue }
            let isOutdone = present.contains {
                $0.map { !$0.isReplaced(by: old) && $0.isOfSameSeries(as: old) } ?? false
            }
            guard !isOutdone,
                let place = present.firstIndex(where: { $0?.isReplaced(by: old) ?? false })
            else { continue }
            present[place] = old
            file.lists[place] = der
            file.contents[place] = before.contents[index]
            warnings.append(
                "\(quoted(path)) holds an older list of \(old.issuer) than is in force: the newer "
                    + "one stays until there is a newer still, or the configuration is reloaded")
        }
        return (file, warnings)
    }
}

extension Pinset {
    /// Whether a server's own certificate is all that its chain need lead to.
    fileprivate var anchorsServersUnverified: Bool {
        mode == .certificate && allowInvalidCertificates
            && pins.contains(where: \.isCertificateOfServer)
    }
}

extension UpstreamTLS {
    fileprivate var rootSources: [RootSource] {
        roots.flatMap { source -> [RootSource] in
            switch source {
            case .system: [.system]
            case .file(let path, let certificates):
                certificates.map { .file(name: path, contents: $0) }
            }
        }
    }
}
