import ArgumentParser
import Clocks
import Documents
import Files
import Gateway
import HTTPCore

/// `pinfold cache warm`: requests URLs through the gateway, so that it has them.
struct CacheWarm: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "warm",
        abstract: "Request URLs through the gateway, so that it stores them.",
        discussion: """
            Takes URLs from its arguments, from lists (one on each line; `-` is standard input) \
            and from sitemaps, and requests each with GET at a forward listener, which also takes \
            https URLs: what is stored is what intercepted clients get. With --reverse, their \
            paths are requested at a reverse listener. A listener with TLS must prove that it is \
            the gateway, as the administrative address must (--cacert, --config); --cert is for \
            it, too. What the response to a URL says in \
            Cache-Status decides how it is counted. Exits with 0 if every URL has a response \
            below 400, with 1 if one has not, and with 2 if nothing can be requested.
            """)

    @Argument(help: ArgumentHelp("URLs to request.", valueName: "url"))
    var urls: [String] = []

    @Option(
        help: ArgumentHelp(
            "A file with URLs, one on each line; `-` is standard input; repeatable.",
            valueName: "file"), completion: .file())
    var list: [String] = []

    @Option(
        help: ArgumentHelp(
            """
            A sitemap, or an index of sitemaps, also compressed with gzip: a file, or a URL that \
            is requested through the gateway; repeatable.
            """, valueName: "file|url"), completion: .file())
    var sitemap: [String] = []

    @Option(
        help: ArgumentHelp(
            """
            The forward listener: ADDRESS:PORT, http://HOST[:PORT] or, with TLS, \
            https://HOST[:PORT]. By default the first one that the gateway names at its \
            administrative address; one without TLS if there is any.
            """, valueName: "listener"))
    var proxy: String?

    @Option(
        help: ArgumentHelp(
            "The reverse listener at which the paths of the URLs are requested, likewise. What is "
                + "stored for clients with TLS is requested with TLS.",
            valueName: "listener"))
    var reverse: String?

    @Option(
        help: ArgumentHelp(
            "A file with `user:password` for a listener that asks who is asking.",
            valueName: "file"), completion: .file())
    var userFile: String?

    @Option(
        name: [.customShort("H"), .customLong("header")],
        help: ArgumentHelp(
            "A field of each request; repeatable. Accept-Encoding decides which variant is stored.",
            valueName: "name: value"))
    var headers: [String] = []

    @Option(help: ArgumentHelp("Requests at a time.", valueName: "count"))
    var parallel = 4

    @Option(help: ArgumentHelp("Requests in a second at most.", valueName: "count"))
    var rate: Int?

    @Flag(help: "Print each URL that has no response below 400, and each that is not stored.")
    var verbose = false

    @Flag(name: .shortAndLong, help: "Show no progress.")
    var silent = false

    @Flag(help: "Print the result in JSON.")
    var json = false

    @OptionGroup var options: AdministrationOptions

    func validate() throws {
        guard !(urls + list + sitemap).isEmpty else {
            throw ValidationError("expected URLs, --list or --sitemap")
        }
        guard (1...64).contains(parallel) else {
            throw ValidationError("--parallel must be from 1 to 64")
        }
        if let rate, !(1...100_000).contains(rate) {
            throw ValidationError("--rate must be from 1 to 100000")
        }
        if proxy != nil, reverse != nil {
            throw ValidationError("--proxy and --reverse do not go together")
        }
        for header in headers {
            guard let colon = header.firstIndex(of: ":"), colon != header.startIndex,
                header.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
            else { throw ValidationError("\(header): expected NAME: VALUE") }
        }
    }

    func run() throws {
        let target: WarmTarget
        var requests: [WarmRequest]
        do {
            target = try findTarget()
            requests = try collect(for: target)
        } catch let error as ExitCode {
            throw error
        } catch {
            writeError("\(error)")
            throw ExitCode(2)
        }
        var known = Set<String>()
        requests = requests.filter { known.insert($0.url).inserted }
        let work = WarmWork(
            requests, target: target, rate: rate, timeout: Int64(options.timeout * 1000),
            isVerbose: verbose,
            progress: CountProgress("URLs", total: Int64(requests.count), isOn: !silent))
        let result = try work.run(parallel: parallel)
        writeToStandardOutput(json ? "\(result.value)\n" : result.text)
        if result.failed > 0 { throw ExitCode(1) }
    }

    // MARK: The URLs

    private func collect(for target: WarmTarget) throws -> [WarmRequest] {
        var requests = try urls.map { try target.request($0) }
        for path in list {
            let content = path == "-" ? Self.standardInput() : try CommandFiles.read(path)
            for line in String(decoding: content, as: UTF8.self).split(whereSeparator: \.isNewline)
            {
                let url = line.trimmingBlanks
                if !url.isEmpty, !url.hasPrefix("#") { requests.append(try target.request(url)) }
            }
        }
        var reader = SitemapReader(target: target, timeout: Int64(options.timeout * 1000))
        for place in sitemap { try reader.read(place) }
        for page in reader.pages { requests.append(try target.request(page)) }
        if reader.foreign > 0 {
            writeWarning("\(reader.foreign) URLs of other hosts than their sitemap's are left out")
        }
        return requests
    }

    private static func standardInput() -> [UInt8] {
        var content: [UInt8] = []
        while case let more = readStandardInput(), !more.isEmpty { content += more }
        return content
    }
}

extension Substring {
    fileprivate var trimmingBlanks: String {
        var rest = self
        while let first = rest.first, first.isWhitespace { rest.removeFirst() }
        while let last = rest.last, last.isWhitespace { rest.removeLast() }
        return String(rest)
    }
}

/// Reads sitemaps, and those that they refer to.
struct SitemapReader {
    let target: WarmTarget
    let timeout: Int64
    private(set) var pages: [String] = []
    /// What fetched sitemaps name of other hosts, and is left out.
    private(set) var foreign = 0
    private var known: Set<String> = []

    /// The most sitemaps that are read: an index lists 50,000, and must not list itself.
    static let maximumSitemaps = 50_000

    init(target: WarmTarget, timeout: Int64) {
        self.target = target
        self.timeout = timeout
    }

    /// - Parameter place: a file or a URL. What a fetched one names must be of the same host
    ///   (sitemaps.org, "Sitemap file location"): it says neither which files are read here, nor
    ///   who gets the fields of the requests.
    mutating func read(_ place: String) throws {
        var waiting: [(place: String, host: Substring?)] = [(place, nil)]
        while let next = waiting.popLast() {
            guard known.insert(next.place).inserted else { continue }
            guard known.count <= Self.maximumSitemaps else {
                throw CommandError("\(place): more than \(Self.maximumSitemaps) sitemaps")
            }
            let host = Self.host(of: next.place)
            if let named = next.host, host != named {
                foreign += 1
                continue
            }
            let content =
                host == nil ? try CommandFiles.read(next.place) : try fetch(next.place)
            do throws(Sitemap.SitemapError) {
                let sitemap = try Sitemap(content)
                for page in sitemap.pages {
                    if host == nil || Self.host(of: page) == host {
                        pages.append(page)
                    } else {
                        foreign += 1
                    }
                }
                waiting += sitemap.sitemaps.reversed().map { ($0, host) }
            } catch {
                throw CommandError("\(next.place): \(error)")
            }
        }
    }

    /// `host[:port]` in lower case; `nil` if it is no http or https URL.
    private static func host(of place: String) -> Substring? {
        let lowered = place.lowercasedASCII
        for scheme in ["http://", "https://"] where lowered.hasPrefix(scheme) {
            return lowered.dropFirst(scheme.count).prefix { !"/?#".contains($0) }
        }
        return nil
    }

    private func fetch(_ url: String) throws -> [UInt8] {
        var connection = WarmConnection(to: target, timeout: timeout)
        var content: [UInt8] = []
        let response: WarmResponse
        do throws(WarmError) {
            response = try connection.get(target.request(sitemap: url)) { bytes in
                if content.count <= Sitemap.maximumBytes { content += bytes }
            }
        } catch {
            throw CommandError("\(url): \(error)")
        }
        guard response.status == 200 else {
            throw CommandError("\(url): the response has status \(response.status)")
        }
        return content
    }
}

extension WarmTarget {
    fileprivate func request(sitemap url: String) -> [UInt8] {
        (try? request(url).head) ?? []
    }
}
