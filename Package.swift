// swift-tools-version: 6.2
import PackageDescription

/// Every target is compiled in Swift 6 language mode and a warning is an error. Exclusive access to
/// class properties is checked at run time where the tests run, in debug builds; a release build
/// does without, for it is paid at every access on the hot path.
///
/// The optimizer's object outliner stays off. For a function that is compiled in two modules, Swift
/// 6.3.1 makes the function's array literals into constants of the same names in both, numbered in
/// an order of its own in each; the linker keeps one, and the other module's code then reads
/// another literal's elements (mended in swiftlang/swift#88178). It costs no instructions here.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6), .treatAllWarnings(as: .error),
    .unsafeFlags(
        ["-enforce-exclusivity=unchecked", "-Xllvm", "-sil-disable-pass=object-outliner"],
        .when(configuration: .release)),
]

/// For the targets whose small functions are called for every message from other targets: by itself
/// the compiler does not inline what has access level `package` across targets. A request that is
/// passed on takes 17 % fewer instructions so.
let inlined: [SwiftSetting] =
    strict + [
        .unsafeFlags(
            ["-Xllvm", "-sil-cross-module-serialize-all"], .when(configuration: .release))
    ]

/// What each folder of `Sources` may import besides the standard library and `Synchronization`:
/// modules of this package that stand above it, and products of others. A folder is a module, or one
/// within a module; that may then import less, or what the rest of the module may not. Nothing else
/// says so: the targets below are made of it, and tests hold the files and the page on the
/// architecture to it.
let imports: KeyValuePairs<String, Set<String>> = [
    // Core: decisions as values. No system calls, no clock, no threads.
    "Core/Notation": [],
    "Core/Addressing": ["Notation"],
    "Core/ClientShares": ["Addressing"],
    "Core/HTTPCore": ["Notation", "Addressing"],
    "Core/CachePolicy": ["COpenSSL", "Notation", "HTTPCore"],
    "Core/CertificateProfile": ["Notation", "Addressing"],
    "Core/Pinning": ["Notation", "Addressing", "CertificateProfile"],
    "Core/TLSWire": ["Notation"],
    "Core/PinfoldConfiguration": [
        "Notation", "HTTPCore", "Addressing", "CertificateProfile", "Pinning",
    ],
    "Core/Documents": ["CExpat", "CRapidJSON", "Notation"],
    "Core/ContentCoding": ["CZlib", "CBrotli", "Notation"],
    "Core/Transformation": [
        "Notation", "HTTPCore", "CachePolicy", "Documents", "ContentCoding", "PinfoldConfiguration",
    ],
    "Core/JSONSchema": ["CRE2", "Notation", "Addressing", "Documents", "Transformation"],
    "Core/Activity": [],
    // Platform: effects, one kind in each module.
    "Platform/Clocks": ["CLinux"],
    "Platform/Locking": ["CLinux"],
    "Platform/Threads": ["CLinux", "Locking"],
    "Platform/DurableFiles": ["CLinux"],
    "Platform/EventLoop": ["CLinux", "Addressing", "Clocks", "Locking"],
    "Platform/SuffixList": ["CPublicSuffix", "CertificateProfile"],
    "Platform/ImageCodecs": ["CImages"],
    "Platform/TLS": [
        "CLinux", "COpenSSL", "Notation", "Addressing", "ClientShares", "CertificateProfile",
        "Pinning", "TLSWire", "Clocks", "Locking", "SuffixList",
    ],
    "Platform/CertificateAuthority": [
        "COpenSSL", "Notation", "Addressing", "ClientShares", "Pinning", "Clocks", "Locking",
        "Threads", "TLS",
    ],
    "Platform/CacheStore": [
        "CLinux", "CSQLite", "HTTPCore", "CachePolicy", "Clocks", "Locking", "Threads",
    ],
    "Platform/Resolver": [
        "CLinux", "CAres", "Notation", "Addressing", "ClientShares", "Clocks", "Locking", "Threads",
    ],
    "Gateway/PinReporting": [
        "CLinux", "Notation", "HTTPCore", "Addressing", "Pinning", "Clocks", "DurableFiles",
        "Locking", "Threads", "EventLoop", "TLS", "Resolver", "PinfoldConfiguration",
    ],
    // Engine: what carries an exchange out, for the gateway and the library.
    "Engine/PinfoldMetrics": ["Notation"],
    "Engine/Engine": [
        "CLinux", "Notation", "HTTPCore", "CachePolicy", "Addressing", "ClientShares",
        "CertificateProfile", "Pinning", "Documents", "ContentCoding", "Transformation",
        "JSONSchema", "Activity", "PinfoldMetrics", "Clocks", "Locking", "EventLoop", "TLS",
        "TLSWire", "CertificateAuthority", "CacheStore", "Resolver", "PinReporting",
        "PinfoldConfiguration", "Logging", "RawStructuredFieldValues",
    ],
    // Client: the library.
    "Client/Retries": ["HTTPCore"],
    "Client/Serialization": [
        "CLinux", "Notation", "Documents", "ImageCodecs", "HTTPTypes",
    ],
    // Coders for types of the caller's own: the one thing that is taken from Foundation.
    "Client/Serialization/Codable": ["Documents", "Locking", "HTTPTypes", "FoundationEssentials"],
    "Client/Cookies": ["CLinux", "Notation", "Addressing", "DurableFiles", "SuffixList"],
    "Client/HTTPAuthentication": ["COpenSSL", "Notation"],
    "Client/EventStreams": ["COpenSSL", "CZlib", "Notation"],
    "Client/Reachability": ["CLinux", "Addressing", "Activity"],
    "Client/ImageCache": ["CLinux"],
    "Client/PinfoldClient": [
        "CLinux", "CInternationalNames", "Notation", "HTTPCore", "ContentCoding", "Addressing",
        "Pinning", "PinfoldConfiguration", "Documents", "Retries", "Serialization", "Activity",
        "Reachability", "ImageCache", "PinfoldMetrics", "Clocks", "DurableFiles", "Locking",
        "Threads", "EventLoop", "EventStreams", "HTTPAuthentication", "Cookies", "TLS",
        "CacheStore", "Resolver", "Engine", "HTTPTypes", "Logging",
    ],
    // Gateway: listeners, the administration, the process.
    "Gateway/Imaging": [
        "CLinux", "Clocks", "Locking", "Threads", "PinfoldConfiguration", "Transformation",
        "ImageCodecs",
    ],
    "Gateway/ConfigurationFile": [
        "CLinux", "Notation", "HTTPCore", "Addressing", "CertificateProfile", "Pinning", "Clocks",
        "TLS", "CertificateAuthority", "PinfoldConfiguration", "Documents", "JSONSchema", "Yams",
    ],
    "Gateway/Admin": [
        "CLinux", "Notation", "ContentCoding", "PinfoldMetrics", "Activity", "HTTPCore", "Clocks",
    ],
    "Gateway/Gateway": [
        "CLinux", "Notation", "Addressing", "ClientShares", "HTTPCore", "CachePolicy", "Pinning",
        "Activity", "Clocks", "Locking", "Threads", "EventLoop", "TLS", "CertificateAuthority",
        "CacheStore", "Resolver", "PinfoldMetrics", "PinReporting", "Engine",
        "PinfoldConfiguration", "Admin", "Logging",
    ],
    // What handles requests knows the values of a configuration only, not the file.
    "Gateway/Gateway/Process": [
        "CLinux", "Addressing", "CachePolicy", "Pinning", "Activity", "Clocks", "Locking",
        "Threads", "EventLoop", "TLS", "CertificateAuthority", "CacheStore", "Resolver",
        "PinfoldMetrics", "PinReporting", "Engine", "Imaging", "PinfoldConfiguration",
        "ConfigurationFile", "Admin", "Logging",
    ],
    // CommandLine: the program.
    "CommandLine/PinTools": [
        "CLinux", "Notation", "Addressing", "Pinning", "Clocks", "Locking", "EventLoop", "TLS",
        "Resolver", "PinfoldConfiguration", "Documents",
    ],
    "CommandLine/TrustCheck": [
        "Notation", "Addressing", "CertificateProfile", "Pinning", "TLS", "PinfoldConfiguration",
        "ConfigurationFile", "Engine",
    ],
    "CommandLine/pinfold": [
        "CLinux", "Notation", "Addressing", "CertificateProfile", "Pinning", "Clocks", "TLS",
        "CertificateAuthority", "PinfoldConfiguration", "ConfigurationFile", "TrustCheck",
        "Transformation", "JSONSchema", "Imaging", "Engine", "Gateway", "PinTools", "PinReporting",
        "PinfoldClient", "Serialization", "Retries", "Locking", "DurableFiles", "HTTPTypes",
        "ArgumentParser",
    ],
]

/// The same for `Tests`.
let testImports: KeyValuePairs<String, Set<String>> = [
    // What the tests of several modules need.
    "Support/TestSupport": [],
    "Support/EngineTestSupport": [
        "TestSupport", "Engine", "HTTPCore", "Addressing", "Pinning", "Activity", "EventLoop",
        "TLS", "PinfoldConfiguration", "ConfigurationFile",
    ],
    "Support/FuzzTargets": [
        "Documents", "ContentCoding", "JSONSchema", "PinfoldConfiguration", "HTTPCore",
        "Transformation", "ImageCodecs",
    ],
    "Support/ImageTestWorker": ["Imaging", "CLinux"],
    "Support/ArchitectureTests": ["TestSupport"],
    // The tests.
    "Core/NotationTests": ["Notation"],
    "Core/AddressingTests": ["Addressing"],
    "Core/ClientSharesTests": ["ClientShares", "Addressing"],
    "Core/HTTPCoreTests": ["HTTPCore", "Notation", "TestSupport"],
    "Core/CachePolicyTests": ["CachePolicy", "HTTPCore"],
    "Core/CertificateProfileTests": ["CertificateProfile"],
    "Core/PinningTests": ["Pinning", "Notation"],
    "Core/TLSWireTests": ["TLSWire"],
    "Core/ConfigurationTests": ["PinfoldConfiguration", "Addressing", "Pinning", "TestSupport"],
    "Core/DocumentsTests": ["TestSupport", "Documents"],
    "Core/ContentCodingTests": ["ContentCoding"],
    "Core/TransformationTests": [
        "TestSupport",
        "Transformation", "HTTPCore", "Documents", "ContentCoding", "PinfoldConfiguration",
    ],
    "Core/JSONSchemaTests": ["JSONSchema", "Documents", "Transformation"],
    "Core/ActivityTests": ["Activity"],
    "Core/FuzzTests": ["TestSupport", "FuzzTargets"],
    "Platform/ClocksTests": ["Clocks", "CLinux"],
    "Platform/LockingTests": ["Locking", "CLinux", "Clocks", "Threads"],
    "Platform/ThreadsTests": ["Threads", "CLinux", "Locking"],
    "Platform/DurableFilesTests": ["DurableFiles", "CLinux", "TestSupport"],
    "Platform/EventLoopTests": [
        "EventLoop", "CLinux", "Addressing", "Clocks", "Locking", "Threads", "TestSupport",
    ],
    "Platform/ImageCodecsTests": ["ImageCodecs", "CLinux", "TestSupport"],
    "Platform/TLSTests": [
        "TLS", "TLSWire", "CLinux", "COpenSSL", "Addressing", "CertificateProfile", "Pinning",
        "Locking", "SuffixList",
    ],
    "Platform/CertificateAuthorityTests": [
        "CertificateAuthority", "COpenSSL", "CLinux", "Addressing", "Pinning", "Clocks", "Locking",
        "TLS",
    ],
    "Platform/CacheStoreTests": [
        "CacheStore", "CLinux", "CSQLite", "HTTPCore", "CachePolicy", "Clocks", "Locking",
        "TestSupport",
    ],
    "Platform/ResolverTests": [
        "Resolver", "CLinux", "Addressing", "Clocks", "Locking", "TestSupport",
    ],
    "Engine/MetricsTests": ["PinfoldMetrics"],
    "Engine/EngineTests": [
        "Engine", "CLinux", "HTTPCore", "CachePolicy", "CacheStore", "Addressing",
        "CertificateProfile", "Pinning", "Activity", "PinfoldMetrics", "Clocks", "Threads",
        "EventLoop", "TLS", "CertificateAuthority", "Resolver", "PinfoldConfiguration",
        "TestSupport", "EngineTestSupport", "Transformation", "Logging", "RawStructuredFieldValues",
    ],
    "Client/RetriesTests": ["Retries"],
    "Client/SerializationTests": [
        "FoundationEssentials", "TestSupport", "Serialization", "Documents", "ImageCodecs",
        "HTTPTypes",
    ],
    "Client/CookiesTests": ["Cookies"],
    "Client/HTTPAuthenticationTests": ["HTTPAuthentication", "TestSupport"],
    "Client/EventStreamsTests": ["EventStreams", "TestSupport"],
    "Client/ReachabilityTests": ["Reachability"],
    "Client/ImageCacheTests": ["ImageCache"],
    "Client/PinfoldClientTests": [
        "FoundationEssentials", "Clocks", "PinfoldClient", "Engine", "Serialization",
        "EventStreams", "Documents", "CLinux",
        "Addressing", "EventLoop", "Locking", "Pinning", "Resolver", "Retries", "ContentCoding",
        "Cookies", "HTTPAuthentication", "TLS", "Threads", "TestSupport", "Reachability",
        "ImageCache", "HTTPTypes",
    ],
    "Gateway/PinReportingTests": [
        "PinReporting", "PinfoldConfiguration", "Pinning", "CLinux", "Locking", "Threads",
        "Addressing", "EventLoop", "TLS", "Resolver", "TestSupport",
    ],
    "Gateway/ImagingTests": [
        "Imaging", "ImageTestWorker", "ImageCodecs", "PinfoldConfiguration", "Transformation",
        "CLinux", "Locking", "Threads", "TestSupport",
    ],
    "Gateway/ConfigurationFileTests": [
        "ConfigurationFile", "PinfoldConfiguration", "CertificateAuthority", "Addressing",
        "Pinning", "Clocks", "TestSupport",
    ],
    "Gateway/AdminTests": [
        "Admin", "PinfoldMetrics", "Activity", "HTTPCore", "Locking", "ContentCoding",
    ],
    "Gateway/GatewayTests": [
        "Gateway", "Engine", "CLinux", "COpenSSL", "HTTPCore", "Addressing", "Pinning", "Activity",
        "PinfoldMetrics", "Locking", "EventLoop", "TLS", "CertificateAuthority", "CacheStore",
        "Resolver", "PinfoldConfiguration", "Admin", "TestSupport", "EngineTestSupport", "Logging",
    ],
    "CommandLine/PinToolsTests": [
        "PinTools", "Pinning", "PinfoldConfiguration", "ConfigurationFile", "TestSupport",
    ],
    "CommandLine/TrustCheckTests": ["TrustCheck", "Notation"],
]

/// Of the imports, what other packages provide.
let products: [String: Target.Dependency] = [
    "ArgumentParser": .product(name: "ArgumentParser", package: "swift-argument-parser"),
    "HTTPTypes": .product(name: "HTTPTypes", package: "swift-http-types"),
    "Logging": .product(name: "Logging", package: "swift-log"),
    "RawStructuredFieldValues": .product(
        name: "RawStructuredFieldValues", package: "swift-http-structured-headers"),
    "Yams": .product(name: "Yams", package: "Yams"),
]

/// Of the imports, what the toolchain provides.
let toolchain: Set<String> = ["FoundationEssentials"]

/// Modules with functions that are called for every message from other modules (see `inlined`).
let hot: Set<String> = [
    "Notation", "Addressing", "ClientShares", "HTTPCore", "CachePolicy", "Documents",
    "PinfoldMetrics", "Clocks", "Locking", "EventLoop", "CacheStore", "Engine",
]

/// The targets of a table: one for each module, `Base/Room/Module`.
func targets(
    in base: String, _ imports: KeyValuePairs<String, Set<String>>,
    make: (_ name: String, _ dependencies: [Target.Dependency], _ path: String) -> Target
) -> [Target] {
    let modules = imports.map { folder, _ in folder.split(separator: "/").prefix(2) }
    return modules.indices.filter { modules.firstIndex(of: modules[$0]) == $0 }.map { index in
        let folder = modules[index].joined(separator: "/")
        let all = imports.filter { $0.key == folder || $0.key.hasPrefix(folder + "/") }
            .reduce(into: Set()) { $0.formUnion($1.value) }.subtracting(toolchain)
        return make(
            String(modules[index].last ?? ""),
            all.sorted().map { products[$0] ?? .target(name: $0) }, base + "/" + folder)
    }
}

/// A module map and a header of shims over a library of the system; no logic.
func system(_ name: String, pkgConfig: String? = nil, _ debian: String...) -> Target {
    .systemLibrary(
        name: name, path: "Sources/C/" + name, pkgConfig: pkgConfig,
        providers: debian.isEmpty ? nil : [.apt(debian)])
}

let libraries: [Target] = [
    system("CLinux"),
    system("COpenSSL", pkgConfig: "openssl", "libssl-dev"),
    system("CSQLite", pkgConfig: "sqlite3", "libsqlite3-dev"),
    system("CAres", pkgConfig: "libcares", "libc-ares-dev"),
    system("CPublicSuffix", pkgConfig: "libpsl", "libpsl-dev"),
    system("CInternationalNames", pkgConfig: "libidn2", "libidn2-dev"),
    system("CExpat", pkgConfig: "expat", "libexpat1-dev"),
    system("CZlib", pkgConfig: "zlib", "zlib1g-dev"),
    system("CBrotli", pkgConfig: "libbrotlienc", "libbrotli-dev"),
    // RapidJSON's headers (rapidjson-dev) are C++: its events, as C.
    .target(name: "CRapidJSON", path: "Sources/C/CRapidJSON"),
    // The image libraries leave their functions by longjmp, which Swift must not see. AVIF's is
    // loaded at run time.
    .target(
        name: "CImages", path: "Sources/C/CImages",
        linkerSettings: [
            .linkedLibrary("jpeg"), .linkedLibrary("png16"), .linkedLibrary("webp"),
            .linkedLibrary("webpdemux"),
        ]),
    // RE2 (libre2-dev) is C++: compiled expressions, as C.
    .target(
        name: "CRE2", path: "Sources/C/CRE2", linkerSettings: [.linkedLibrary("re2")]),
]

let package = Package(
    name: "pinfold",
    products: [
        .executable(name: "pinfold", targets: ["pinfold"]),
        .library(name: "PinfoldClient", targets: ["PinfoldClient"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-http-structured-headers", from: "1.7.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
    ],
    targets: libraries
        + targets(in: "Sources", imports) { name, dependencies, path in
            var settings = hot.contains(name) ? inlined : strict
            if name == "Notation" { settings.append(.enableExperimentalFeature("Lifetimes")) }
            return name == "pinfold"
                ? .executableTarget(
                    name: name, dependencies: dependencies, path: path, swiftSettings: settings)
                : .target(
                    name: name, dependencies: dependencies, path: path, swiftSettings: settings)
        }
        + targets(in: "Tests", testImports) { name, dependencies, path in
            switch name {
            // The process that decodes, for tests, which have no `pinfold` beside them.
            case "ImageTestWorker":
                .executableTarget(
                    name: name, dependencies: dependencies, path: path, swiftSettings: strict)
            case _ where name.hasSuffix("Tests"):
                .testTarget(
                    name: name, dependencies: dependencies, path: path,
                    exclude: name == "ImageCodecsTests" ? ["Images"] : [], swiftSettings: strict)
            default:
                .target(name: name, dependencies: dependencies, path: path, swiftSettings: strict)
            }
        }
)
