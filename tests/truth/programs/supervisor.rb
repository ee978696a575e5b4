# The same as supervisor.sh, in Ruby. supervisor.rb WHY PROGRAM WORDS...
why, *words = ARGV
2.times do
  worker = Process.spawn(*words)
  if why == "limit"
    sleep 0.02 until File.read("/proc/#{worker}/statm").split[1].to_i >= 20_480
  else
    sleep 1.5
  end
  Process.kill(:KILL, worker)
  Process.wait(worker)
end
