// Command lines as they occur: which secrets are masked, and that nothing else is changed.
#include "common/session/secrets.h"

#include <doctest/doctest.h>

#include <ctime>
#include <string>
#include <vector>

namespace oomrec::session {
namespace {

using Words = std::vector<std::string>;

std::string joined(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += word + '\0';
  return text;
}

// With | between the arguments.
std::string shown(std::string text) {
  for (char& c : text) c = c == '\0' ? '|' : c;
  if (text.ends_with('|')) text.pop_back();
  return text;
}

std::string masked(const Words& words) {
  std::string text = joined(words);
  const std::size_t before = text.size();
  text.resize(mask_secrets(text.data(), text.size()));
  CHECK(text.size() <= before);
  return shown(text);
}

std::string names_of(const Words& words) {
  std::string text = joined(words);
  text.resize(keep_names(text.data(), text.size()));
  return shown(text);
}

struct Case {
  Words words;
  const char* expected;
};

const Case kSecrets[] = {
    // by the name of an option
    {{"a", "--password", "hunter2", "b"}, "a|--password|***|b"},
    {{"a", "--password=hunter2", "b"}, "a|--password=***|b"},
    {{"a", "--password=two words"}, "a|--password=***"},
    {{"a", "--pass", "hunter2"}, "a|--pass|***"},
    {{"a", "--pass=hunter2"}, "a|--pass=***"},
    {{"a", "-password", "hunter2"}, "a|-password|***"},
    {{"a", "--passwd", "hunter2"}, "a|--passwd|***"},
    {{"a", "--db-password", "hunter2"}, "a|--db-password|***"},
    {{"a", "--dbPassword", "hunter2"}, "a|--dbPassword|***"},
    {{"a", "--token", "abcdef", "x"}, "a|--token|***|x"},
    {{"a", "--token=abcdef"}, "a|--token=***"},
    {{"a", "--hf-token", "abcdef"}, "a|--hf-token|***"},
    {{"a", "--hf_token", "12"}, "a|--hf_token|**"},
    {{"a", "--auth-token=123456"}, "a|--auth-token=***"},
    {{"a", "--api-key", "abc"}, "a|--api-key|***"},
    {{"a", "--api_key", "abc"}, "a|--api_key|***"},
    {{"a", "--apiKey=abc"}, "a|--apiKey=***"},
    {{"a", "--wandb-key", "0123456789abcdef"}, "a|--wandb-key|***"},
    {{"a", "--aws-secret-access-key", "xy"}, "a|--aws-secret-access-key|**"},
    {{"a", "--client-secret", "abc"}, "a|--client-secret|***"},
    {{"a", "--key", "s3cr3tk3yvalue"}, "a|--key|***"},
    {{"a", "--encryption-key=abc"}, "a|--encryption-key=***"},
    {{"a", "--credentials", "me:abc"}, "a|--credentials|***"},
    {{"a", "--Credentials=q q", "--keyboard", "us"}, "a|--Credentials=***|--keyboard|us"},
    {{"a", "--cookie", "session=abc"}, "a|--cookie|***"},
    {{"a", "--oauth2-bearer", "abc"}, "a|--oauth2-bearer|***"},
    {{"a", "--otp", "123456"}, "a|--otp|***"},
    {{"putty", "-pw", "abc"}, "putty|-pw|***"},
    {{"login", "password", "x"}, "login|password|*"},
    {{"wget", "--http-password=abc", "http://h/"}, "wget|--http-password=***|http://h/"},
    {{"keytool", "-storepass", "abc"}, "keytool|-storepass|***"},
    {{"java", "-Djavax.net.ssl.keyStorePassword=abc", "Main"},
     "java|-Djavax.net.ssl.keyStorePassword=***|Main"},
    {{"helm", "--set", "image=x,auth.password=abc,n=1"},
     "helm|--set|image=x,auth.password=***,n=1"},
    {{"train.py", "logger.api_key=abc", "lr=0.1"}, "train.py|logger.api_key=***|lr=0.1"},
    // by the name of a variable
    {{"env", "API_KEY=xyz1234", "x"}, "env|API_KEY=***|x"},
    {{"docker", "run", "-e", "POSTGRES_PASSWORD=abc", "x"},
     "docker|run|-e|POSTGRES_PASSWORD=***|x"},
    {{"docker", "run", "-ePGPASSWORD=abc"}, "docker|run|-ePGPASSWORD=***"},
    {{"docker", "run", "--env=AWS_SECRET_ACCESS_KEY=abc"},
     "docker|run|--env=AWS_SECRET_ACCESS_KEY=***"},
    {{"env", "MYSQL_PWD=abc", "mysql"}, "env|MYSQL_PWD=***|mysql"},
    {{"env", "SECRET=correct horse battery"}, "env|SECRET=***"},
    {{"env", "OPENAI_API_KEY_2=abc"}, "env|OPENAI_API_KEY_2=***"},
    // by the program
    {{"mysql", "-u", "root", "-phunter2", "db"}, "mysql|-u|root|-p***|db"},
    {{"/usr/bin/mysqldump", "-phunter2"}, "/usr/bin/mysqldump|-p***"},
    {{"sudo", "mariadb", "-phunter2"}, "sudo|mariadb|-p***"},
    {{"curl", "-u", "user:hunter2", "http://h/"}, "curl|-u|user:***|http://h/"},
    {{"curl", "-uuser:hunter2"}, "curl|-uuser:***"},
    {{"curl", "--user", "user:hunter2"}, "curl|--user|user:***"},
    {{"curl", "-sSu", "user:hunter2"}, "curl|-sSu|user:***"},
    {{"curl", "--proxy-user", "user:hunter2"}, "curl|--proxy-user|user:***"},
    {{"curl", "-b", "session=abcdef; id=1"}, "curl|-b|***"},
    {{"http", "-a", "user:hunter2"}, "http|-a|user:***"},
    {{"sshpass", "-p", "hunter2", "ssh", "-p", "22", "h"}, "sshpass|-p|***|ssh|-p|22|h"},
    {{"sshpass", "-phunter2", "ssh"}, "sshpass|-p***|ssh"},
    {{"redis-cli", "-a", "hunter2"}, "redis-cli|-a|***"},
    {{"mongosh", "-u", "me", "-p", "hunter2"}, "mongosh|-u|me|-p|***"},
    {{"docker", "login", "-u", "me", "-p", "hunter2"}, "docker|login|-u|me|-p|***"},
    {{"7z", "a", "-phunter2", "x.7z"}, "7z|a|-p***|x.7z"},
    {{"unzip", "-P", "hunter2", "x.zip"}, "unzip|-P|***|x.zip"},
    {{"ldapsearch", "-w", "hunter2"}, "ldapsearch|-w|***"},
    {{"smbclient", "-U", "me%hunter2"}, "smbclient|-U|me%***"},
    {{"openssl", "enc", "-pass", "pass:hunter2"}, "openssl|enc|-pass|***"},
    {{"openssl", "rsa", "-passin", "pass:hunter2"}, "openssl|rsa|-passin|pass:***"},
    // headers
    {{"curl", "-H", "Authorization: Bearer abc"}, "curl|-H|Authorization: ***"},
    {{"curl", "--header", "authorization: Basic dTpw"}, "curl|--header|authorization: ***"},
    {{"curl", "--header=Authorization: Bearer abc"}, "curl|--header=Authorization: ***"},
    {{"curl", "-H", "X-Api-Key: abc"}, "curl|-H|X-Api-Key: ***"},
    {{"curl", "-H", "PRIVATE-TOKEN:abc"}, "curl|-H|PRIVATE-TOKEN:***"},
    {{"curl", "-H", "Cookie: a=1; session=abc"}, "curl|-H|Cookie: ***"},
    {{"x", "--arg", "Bearer abcdef123456"}, "x|--arg|Bearer ***"},
    // URLs
    {{"psql", "postgres://me:hunter2@host/db"}, "psql|postgres://me:***@host/db"},
    {{"x", "redis://:hunter2@host:6379/0"}, "x|redis://:***@host:6379/0"},
    {{"x", "mongodb://u:p@ss@h1,h2/db"}, "x|mongodb://u:***@h1,h2/db"},
    {{"x", "postgres://u:pa/ss@h/db"}, "x|postgres://u:***@h/db"},
    {{"x", "--db=mysql+pymysql://u:abc@h:3306/d?x=1"}, "x|--db=mysql+pymysql://u:***@h:3306/d?x=1"},
    {{"x", "a://u:abc@h", "b://u:def@h"}, "x|a://u:***@h|b://u:***@h"},
    {{"x", "amqp://u:abc@h1,amqp://u:defg@h2"}, "x|amqp://u:***@h1,amqp://u:***@h2"},
    {{"x", "https://h/p?token=abcd&page=2"}, "x|https://h/p?token=***&page=2"},
    {{"x", "https://h/p?page=2&access_token=abcd#top"},
     "x|https://h/p?page=2&access_token=***#top"},
    {{"x", "https://h/b?sv=1&sig=ab%2Bc&se=2"}, "x|https://h/b?sv=1&sig=***&se=2"},
    {{"x", "https://h/k?X-Amz-Signature=abc&X-Amz-Date=1"},
     "x|https://h/k?X-Amz-Signature=***&X-Amz-Date=1"},
    {{"x", "https://maps/api?key=abc"}, "x|https://maps/api?key=***"},
    {{"x", "https://hooks.slack.com/services/T0/B0/abc"}, "x|https://hooks.slack.com/services/***"},
    {{"git", "clone", "https://0123456789abcdef@h/a"}, "git|clone|https://***@h/a"},
    {{"curl", "--user=user:hunter2"}, "curl|--user=user:***"},
    {{"curl", "--header=X-Api-Key:abc"}, "curl|--header=X-Api-Key:***"},
    // JSON and other structures
    {{"x", R"({"user":"me","password":"hunter2"})"}, R"(x|{"user":"me","password":"***"})"},
    {{"x", R"({"password" : "a\"b", "n": 1})"}, R"(x|{"password" : "***", "n": 1})"},
    {{"x", R"({\"password\":\"hunter2\",\"n\":1})"}, R"(x|{\"password\":\"***\",\"n\":1})"},
    {{"x", R"({"api_key": "abc", "lr": 0.1})"}, R"(x|{"api_key": "***", "lr": 0.1})"},
    {{"x", "{'token': 'abc', 'n': 1}"}, "x|{'token': '***', 'n': 1}"},
    {{"x", R"({"password":12345,"n":1})"}, R"(x|{"password":***,"n":1})"},
    {{"x", "host=h password=hunter2 user=me"}, "x|host=h password=*** user=me"},
    {{"x", "host=h password='hunt er2' user=me"}, "x|host=h password='***' user=me"},
    {{"x", "Server=h;Password=a b,c;Database=d"}, "x|Server=h;Password=***;Database=d"},
    {{"x", "Server=h; Pwd=abc; Database=d"}, "x|Server=h; Pwd=***; Database=d"},
    {{"x", "AccountName=a;AccountKey=abc==;E=1"}, "x|AccountName=a;AccountKey=***;E=1"},
    {{"mount", "-o", "username=u,password=abc,uid=1"}, "mount|-o|username=u,password=***,uid=1"},
    {{"x", "user=me&password=abc&n=1"}, "x|user=me&password=***&n=1"},
    // commands within an argument
    {{"sh", "-c", "mysql -phunter2 db"}, "sh|-c|mysql -p*** db"},
    {{"sh", "-c", "PGPASSWORD=hunter2 psql -h h"}, "sh|-c|PGPASSWORD=*** psql -h h"},
    {{"sh", "-c", "x --password hunter2 --n 1"}, "sh|-c|x --password *** --n 1"},
    {{"sh", "-c", "x --password -n 1 --token --x"}, "sh|-c|x --password -n 1 --token --x"},
    {{"sh", "-c", "x --password='hunt er2' --n 1"}, "sh|-c|x --password='***' --n 1"},
    {{"sh", "-c", "x --token \"abc d\"; y"}, "sh|-c|x --token \"***\"; y"},
    {{"sh", "-c", "curl -H 'Authorization: Bearer abc' http://h"},
     "sh|-c|curl -H 'Authorization: ***' http://h"},
    {{"sh", "-c", "curl -u me:abc http://h | jq"}, "sh|-c|curl -u me:*** http://h | jq"},
    {{"sh", "-c", "curl 'h?a=1&token=abc'; curl h?token=abc; true"},
     "sh|-c|curl 'h?a=1&token=***'; curl h?token=***; true"},
    {{"sh", "-c", "export TOKEN=abcd && x"}, "sh|-c|export TOKEN=*** && x"},
    {{"python3", "-c", "login(password = 'abc', n=1)"}, "python3|-c|login(password = '***', n=1)"},
    {{"python3", "-c", "f(api_key=\"abc\", n=1)"}, "python3|-c|f(api_key=\"***\", n=1)"},
    {{"oomrec", "run", "--on-oom-exec", "curl -d @x https://u:abc@h/%p", "x"},
     "oomrec|run|--on-oom-exec|curl -d @x https://u:***@h/%p|x"},
    {{"x", "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\n"},
     "x|-----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY-----\n"},
};

// Masked wherever they stand.
const char* const kTokens[] = {
    "sk-live-abcdef123456",
    "sk-proj-AbC_dEf-123456",
    "sk-ant-api03-AbCdEf_123456",
    "sk-AbCdEf0123456789abcd",
    "sk_live_51HxAbCdEf",
    "ghp_AbCdEf0123456789AbCdEf0123456789abcd",
    "gho_AbCdEf0123456789",
    "github_pat_11ABCDEFG0_abcdefghij",
    "glpat-AbCdEf-0123456789",
    "xoxb-123456789012-AbCdEfGh",
    "xoxp-123456789012-123456789012-abc",
    "AKIAIOSFODNN7EXAMPLE",
    "ASIAIOSFODNN7EXAMPLE",
    "AIzaSyA-1234567890abcdefghijklmnopqrstu",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl_-x",
    "hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567",
    "npm_AbCdEf0123456789AbCdEf0123456789abcd",
    "pypi-AgEIcHlwaS5vcmcCJDAwMDA",
    "ya29.a0AfH6SMBx-abcdef",
    "GOCSPX-abcdefgh1234",
    "dckr_pat_AbCdEf0123",
    "hvs.CAESIAbCdEf0123",
    "SG.AbCdEf0123456789.AbCdEf0123456789",
    "nvapi-AbCdEf-0123456789",
    "gsk_AbCdEf0123456789AbCdEf",
    "r8_AbCdEf0123456789AbCdEf",
    "dop_v1_0123456789abcdef0123",
    "glsa_AbCdEf0123456789",
};

// Nothing here is a secret.
const Words kHarmless[] = {
    {"python3", "train.py", "--lr", "0.001", "--batch-size", "64"},
    {"train.py", "--keyboard", "us"},
    {"train.py", "--max-tokens", "512"},
    {"train.py", "--max_tokens=512"},
    {"train.py", "--max-new-tokens", "1024", "--num-tokens", "4096"},
    {"train.py", "--maxTokens=512", "--tokensPerBatch", "9"},
    {"train.py", "--tokenizer", "bert-base-uncased"},
    {"train.py", "--tokenizer-path", "/data/tok.json", "--tokenizer_name=gpt2"},
    {"train.py", "--tokens", "4096", "--tokens-per-sample", "512"},
    {"train.py", "--pad-token", "[PAD]", "--eos-token", "</s>", "--bos_token=<s>"},
    {"train.py", "--eos-token-id", "50256", "--pad_token_id=0", "--stop-token", "END"},
    {"train.py", "--image-token", "patches", "--mask-token", "MASK", "--special-token", "X"},
    {"train.py", "--token", "<|endoftext|>"},
    {"train.py", "--token-type-ids", "0", "--token-dropout", "0.1", "--token_limit=9999"},
    {"train.py", "--tokens-file", "corpus.bin", "--token-budget", "100000"},
    {"train.py", "--key-size", "4", "--key-dim", "64", "--num-key-value-heads", "8"},
    {"train.py", "--text-key", "content", "--label-key=target", "--image-key", "jpg"},
    {"train.py", "--sort-key", "length", "--cache-key", "v3", "--primary-key", "id"},
    {"train.py", "--key", "input_ids"},
    {"train.py", "data.key=image", "model.keys=[a,b]", "key=value"},
    {"train.py", "--passes", "3", "--num-passes", "2", "--two-pass", "out.txt"},
    {"ffmpeg", "-i", "x.mp4", "-pass", "1", "-passlogfile", "log"},
    {"train.py", "--forward-pass", "fused", "--pass", "2"},
    {"train.py", "--bypass", "cache", "--compass=north", "--passthrough", "all"},
    {"server", "-p", "8080", "--port", "8000"},
    {"docker", "run", "-p", "8080:80", "--user", "1000:1000", "-u", "app:app", "img"},
    {"docker", "run", "-v", "/etc/passwd:/etc/passwd:ro", "img"},
    {"docker", "run", "-v", "./token:/run/secrets/token:ro", "img"},
    {"docker", "login", "--password-stdin", "registry.example.com"},
    {"mysql", "-u", "root", "-P", "3306", "-h", "db", "-p", "shop"},
    {"curl", "-u", "root", "-b", "cookies.txt", "--cookie-jar", "jar.txt", "http://h:80/a"},
    {"curl", "-H", "Content-Type: application/json", "http://h/?page=2&sort=key"},
    {"ssh", "-p", "2222", "git@host", "ls"},
    {"psql", "-p", "5432", "-U", "me", "postgres://me@host:5432/db"},
    {"x", "--password-file", "/run/secrets/db", "--token-file=/run/token"},
    {"x", "--secret-name", "db-credentials", "--token-url", "https://h/oauth"},
    {"x", "--private-key", "/etc/ssl/key.pem", "--ssl-keyfile", "k.pem", "--tls-key", "k.pem"},
    {"x", "--auth", "none", "--auth-type", "basic", "--no-auth", "serve"},
    {"x", "--author", "me", "--authority", "h", "--monkey", "george", "--hockey=ice"},
    {"/home/tokens/run", "x", "/data/passwords/list.txt"},
    {"vllm", "serve", "meta-llama/Llama-3-8B", "--max-num-batched-tokens", "8192",
     "--tokenizer-mode", "auto", "--tensor-parallel-size", "2"},
    {"torchrun", "--nproc_per_node=8", "--rdzv_id=456", "--rdzv_endpoint=h:29400", "train.py"},
    {"deepspeed", "--hostfile", "hosts", "train.py", "--deepspeed_config", "ds.json"},
    {"accelerate", "launch", "--mixed_precision", "bf16", "--main_process_port=29500", "t.py"},
    {"llama-server", "-m", "sk-resnet-50-large-batch", "-c", "4096", "--hf-repo",
     "hf_transformers"},
    {"x", "--loader", "hf_dataset_loader", "--index", "pypi-mirror", "--cmd",
     "npm_config_registry"},
    {"x", "--model", "eyJ", "--name", "AKIA", "--prefix", "ghp_", "--tag", "SG.1"},
    {"x", R"({"tokens": 512, "tokenizer": "bert", "key": "image", "max_token": 5})"},
    {"x", R"({"lr": 0.1, "keys": ["a", "b"], "pad_token": "<pad>", "token": 5})"},
    {"x", "--range", "10:20", "--map", "token:0", "--order", "key:desc"},
    {"python3", "-c", "for key in d: print(key == 'x', tokens[key])"},
    {"python3", "-c", "x = [0] * 10; key = 'abc'; d['key'] = key"},
    {"python3", "-c", "if token == 'end': break"},
    {"sh", "-c", "sort -k 2 --key=2,2n x | head -n 3"},
    {"sh", "-c", "cat /etc/passwd; ls -l 'a b' && echo \"it's\""},
    {"x", "--prompt", "Tell me the key idea of tokens and passes: one word"},
    {"x", "--regex", "[a-z]+=(\\d+)://", "--url", "http://[::1]:8080/a@b"},
    {"x", "https://user@host/path", "ssh://git@host:22/repo.git", "file:///tmp/a:b@c"},
    {"x", "s3://bucket/key=1/date=2026-01-01/part-0.parquet"},
    {"x", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"},
    {"x", "--pin-memory", "--pin_memory=true", "--num-workers", "4"},
    {"x", "--seed", "1234567890", "--commit", "0123456789abcdef0123456789abcdef01234567"},
    {"postgres: checkpointer", ""},
    {"x", "--token=", "--key"},
    {"x", "=", ":", "://", "==", "'", "\"", "\\", "-", "--", "a=", "=b", "&", "?"},
};

TEST_CASE("secrets are masked, and only they") {
  CHECK(std::size(kSecrets) + std::size(kTokens) >= 60);
  for (const Case& one : kSecrets) CHECK(masked(one.words) == one.expected);
}

TEST_CASE("tokens of known shapes are masked wherever they stand") {
  for (const std::string token : kTokens) {
    CHECK(masked({"x", token, "y"}) == "x|***|y");
    CHECK(masked({"x", "--name=" + token, "y"}) == "x|--name=***|y");
    CHECK(masked({"x", "echo '" + token + "' | y"}) == "x|echo '***' | y");
    CHECK(masked({"x", "https://h/" + token + "?a=1"}) == "x|https://h/***?a=1");
  }
}

TEST_CASE("arguments that are no secrets stay as they are") {
  CHECK(std::size(kHarmless) >= 40);
  for (const Words& words : kHarmless) CHECK(masked(words) == shown(joined(words)));
}

TEST_CASE("the last argument may lack its NUL") {
  std::string text{"a\0--password\0hunter2", 20};
  text.resize(mask_secrets(text.data(), text.size()));
  CHECK(shown(text) == "a|--password|***");
  CHECK(mask_secrets(nullptr, 0) == 0);
  CHECK(keep_names(nullptr, 0) == 0);
}

TEST_CASE("a masked list is masked already") {
  for (const Case& one : kSecrets) {
    std::string text = joined(one.words);
    text.resize(mask_secrets(text.data(), text.size()));
    std::string again = text;
    again.resize(mask_secrets(again.data(), again.size()));
    CHECK(shown(again) == shown(text));
  }
}

// Every cut of every line: no read beyond the list (under the address sanitizer), nothing longer.
TEST_CASE("a cut list is masked without a fault") {
  for (const Case& one : kSecrets) {
    const std::string whole = joined(one.words);
    for (std::size_t bytes = 0; bytes <= whole.size(); ++bytes) {
      std::vector<char> text(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
      CHECK(mask_secrets(text.data(), text.size()) <= bytes);
    }
  }
}

TEST_CASE("the longest list takes no time to speak of") {
  constexpr std::size_t kBytes = 64 * 1024;
  for (const std::string piece :
       {"&",    "'",     "\"",          "\\\"",  "`\\",   "://", "://a:",  "key=",       "token=1 ",
        "-a=",  "=",     ":",           "eyJa.", "--x ",  "a ",  "\n",     "password: ", "sk-",
        "pass", "?key=", "-----BEGIN ", "'\"",   "key:'", "(",   "bearer "}) {
    std::string text;
    while (text.size() < kBytes) text += piece;
    CAPTURE(piece);
    const std::clock_t began = std::clock();  // CPU time: other processes do not count
    mask_secrets(text.data(), text.size());
    CHECK(std::clock() - began < 2 * CLOCKS_PER_SEC);
  }
}

TEST_CASE("only the program's name and those of options") {
  CHECK(names_of({"python3", "train.py", "--lr", "0.1", "--token=abc", "-j8", "--x"}) ==
        "python3|--lr|--token|-j|--x");
  CHECK(names_of({"mysql", "-phunter2", "db", "--", "-"}) == "mysql|-p|--");
  CHECK(names_of({"server: user secret@host"}) == "server:");
  CHECK(names_of({"x", "--pass word", "--a:b", "", "--[0]"}) == "x|--pass|--a|--[0]");
}

}  // namespace
}  // namespace oomrec::session
